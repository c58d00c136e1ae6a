"""Record a profiler trace, and draw its timeline (lesson 09)."""
