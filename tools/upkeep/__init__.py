"""What keeps the course true: the weekly alarm, budgets, spoilers, the records of JAX's names and TPU plans."""
