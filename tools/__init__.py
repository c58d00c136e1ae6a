"""Provide the tools that start.py and make run. Each subpackage's docstring describes its purpose."""

import utils  # noqa: F401  (makes `shardcost` and `find_old_jax` importable)

# The pattern of a lesson number, such as 05, or 05b for the second part of a split lesson. It's defined here because
# some of the modules that use the pattern run without any installed packages.
NUMBER = r"\d\d[a-z]?"
