"""Simulate pipeline schedules, and draw them (lesson 12)."""
