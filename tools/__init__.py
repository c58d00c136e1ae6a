"""Run the course's own tools, for start.py and make. Each subpackage says what it's for."""

import utils  # noqa: F401  (makes `shardcost` and `find_old_jax` importable)

# a lesson's number: 05, or 05b in a split one. It's defined here for modules that run on a bare Python
NUMBER = r"\d\d[a-z]?"
