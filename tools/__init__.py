"""What maintainers run by hand, and what the tests share with it."""
