"""Check readers' exercises and predictions. exercise.py and prediction.py explain how to write new ones."""

from exercises.framework.compare import Bound, RunResult, as_numpy
from exercises.framework.cost_runners import build_mesh, run_compiled, run_per_device, run_traced
from exercises.framework.exercise import Edit, Exercise, MessageHint, Mistake, exercise
from exercises.framework.format_values import format_value
from exercises.framework.prediction import GuessVerdict, Prediction

__all__ = [
    "Bound",
    "Edit",
    "Exercise",
    "GuessVerdict",
    "MessageHint",
    "Mistake",
    "Prediction",
    "RunResult",
    "as_numpy",
    "build_mesh",
    "exercise",
    "format_value",
    "run_compiled",
    "run_per_device",
    "run_traced",
]
