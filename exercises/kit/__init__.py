"""Exercises and predictions that check themselves. How to write one: exercise.py and prediction.py."""

from exercises.kit.compare import Bound, Seen, plain
from exercises.kit.exercise import Exercise, exercise
from exercises.kit.prediction import Prediction
from exercises.kit.spelled import shown
from exercises.kit.watch import compiled, on_devices, watched

__all__ = ["Bound", "Exercise", "Prediction", "Seen", "compiled", "exercise", "on_devices", "plain", "shown", "watched"]
