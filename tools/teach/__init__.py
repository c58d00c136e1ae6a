"""Prepare a workshop: slides, and a folder for a USB drive."""
