"""Exercises and predictions that check themselves. How to write one: exercise.py and prediction.py."""

from exercises.framework.compare import Bound, Seen, plain
from exercises.framework.exercise import Exercise, exercise
from exercises.framework.formatting import shown
from exercises.framework.prediction import Prediction
from exercises.framework.runners import compiled, on_devices, watched

__all__ = ["Bound", "Exercise", "Prediction", "Seen", "compiled", "exercise", "on_devices", "plain", "shown", "watched"]
