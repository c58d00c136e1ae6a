"""Prepare a workshop: make its slides, and a folder to hand out on USB drives."""
