"""Exercises and predictions of lesson NN, TITLE."""

from exercises.framework import Edit, Mistake, Prediction, exercise

third = Prediction(
    6, "devices 0, 1 and 2 hold two numbers each before it", {3: "that is its number; it holds the fourth pair"}
)


@exercise(
    "A part has rows / 8 rows, each of `columns` numbers; a float32 takes 4 bytes.",
    cases=[(24, 5), (16, 7), (80, 3)],
    mistakes=[
        Mistake(Edit("/ 8", "", count=3), "that is the whole array; a device holds one of eight parts"),
        Mistake(Edit("4 * columns", "columns", count=2), "these are numbers; how many bytes has a float32?"),
    ],
)
def bytes_of_part(rows, columns):
    """Return the bytes of one of eight parts of a float32 array, along its rows."""
    return 4 * columns * rows / 8
