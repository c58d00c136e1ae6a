"""Exercises of notebook 19, Plan a training run."""

from __future__ import annotations

from utils.exercises import Wrong, exercise, number


def _judge_bytes_of_part(answer):
    # By hand: 24 / 8 = 3 rows of 5 numbers, 4 bytes each, are 60; 16 / 8 = 2 rows of 7 are 56.
    for rows, columns, want in ((24, 5, 60), (16, 7, 56)):
        said = f"Of ({rows}, {columns}) you return"
        got = number(answer(rows, columns), "one number, of bytes", said=said)
        slips = {
            8 * want: "That is the whole array; a device holds one of eight parts.",
            want / 4: "These are numbers; how many bytes has a float32?",
        }
        if got != want:
            raise Wrong(
                f"{said} {got:g}. {slips.get(got, 'How many rows has a part, and how many numbers has a row?')}"
            )


@exercise(_judge_bytes_of_part, "A part has rows / 8 rows, each of `columns` numbers; a float32 takes 4 bytes.")
def bytes_of_part(rows, columns):
    """Return the bytes of one of eight parts of a float32 array, cut along its rows."""
    return 4 * columns * rows / 8
