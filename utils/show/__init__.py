"""Figures with descriptions, tables, and the messages of errors, for a notebook's cells."""
