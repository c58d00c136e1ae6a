"""Lesson 18: simulate Pallas kernels that send, draw the simulations, and check kernels for data races."""
