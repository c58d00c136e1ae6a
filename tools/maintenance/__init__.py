"""Maintain the course: the weekly compatibility check, costs, spoilers, and the records of JAX names and TPU plans."""
