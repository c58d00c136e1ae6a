"""Lesson 12: simulate pipeline schedules, and draw them."""
