"""What the lessons ask: one file a lesson, ex07.py of lesson 07, and the kit that judges all answers alike."""
