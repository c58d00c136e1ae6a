"""Simulators of Pallas kernels that send and of pipeline schedules, and the check for data races in a kernel."""
