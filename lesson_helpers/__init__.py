"""Provide simulators, trace readers and figures for individual lessons. `utils` has what several lessons share."""
