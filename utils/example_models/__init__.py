"""Provide models that several lessons train."""
