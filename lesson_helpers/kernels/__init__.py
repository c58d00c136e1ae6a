"""Simulate Pallas kernels that send data, draw the simulations, and check kernels for data races (lesson 18)."""
