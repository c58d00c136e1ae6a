"""Lesson 09: record a profiler trace, and draw its timeline."""
