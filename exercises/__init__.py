"""Provide exercises and predictions, in one module per lesson (ex07.py for lesson 07), and their framework."""

import utils  # noqa: F401  (makes `shardcost` importable)
