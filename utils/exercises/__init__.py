"""Exercises and predictions that check themselves; one file for each lesson."""

from utils.exercises.choice import Choice
from utils.exercises.exercise import Exercise, Verdict, exercise
from utils.exercises.judge import (
    Wrong,
    flag,
    number,
    numbers,
    on_eight,
    one_of,
    part,
    same,
    several,
    shown,
    spell,
)
from utils.exercises.prediction import Prediction
from utils.exercises.slips import Slips, amount, by_factors, explained, named_slips, off_by

__all__ = [
    "Choice",
    "Exercise",
    "Prediction",
    "Slips",
    "Verdict",
    "Wrong",
    "amount",
    "by_factors",
    "exercise",
    "explained",
    "flag",
    "named_slips",
    "number",
    "numbers",
    "off_by",
    "on_eight",
    "one_of",
    "part",
    "same",
    "several",
    "shown",
    "spell",
]
