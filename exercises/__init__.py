"""Exercises and predictions, one module per lesson (ex07.py is for lesson 07), and the framework that checks answers."""
