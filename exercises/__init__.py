"""Exercises and predictions, with one module per lesson (ex07.py is for lesson 07), and the framework behind them."""

import utils  # noqa: F401  (makes `shardcost` importable)
