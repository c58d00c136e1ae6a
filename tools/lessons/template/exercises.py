"""Exercises and predictions for lesson NN, TITLE."""

from exercises.framework import Edit, Mistake, Prediction, exercise

third = Prediction(
    6, "devices 0 to 2 hold the first six elements, two each", {3: "that's its number, but it holds the fourth pair"}
)


@exercise(
    "A part has rows / 8 rows of `columns` elements, and a float32 element takes 4 bytes.",
    cases=[(24, 5), (16, 7), (80, 3)],
    mistakes=[
        Mistake(Edit("/ 8", ""), "that's the full array, but a device holds one of eight parts"),
        Mistake(Edit("4 * columns", "columns"), "you're counting elements, but how many bytes does a float32 take?"),
    ],
)
def bytes_of_part(rows, columns):
    """Return the bytes of an eighth of a float32 array that's split along its rows."""
    return 4 * columns * rows / 8
