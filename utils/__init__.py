"""Helpers of the course: they count, draw, time and check. What the course teaches stands in the notebooks' cells."""
