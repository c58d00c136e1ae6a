"""Simulators and figures that serve a single lesson. `utils` has what several lessons share."""
