"""Provide simulators and figures for individual lessons. `utils` contains those that several lessons share."""
