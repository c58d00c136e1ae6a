"""Lesson 09: record a profiler's trace, and draw its timeline."""
