"""Figures with descriptions, and tables, for a notebook's cells."""
