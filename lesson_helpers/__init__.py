"""Provide simulators, trace readers and figures for individual lessons.

The package `utils` contains the helpers that several lessons share.
"""
