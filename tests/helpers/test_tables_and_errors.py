"""Test the tables, the display of errors, and the merging of output streams."""

from __future__ import annotations

import pytest
from nbformat.v4 import new_output

from tools.lessons import notebooks
from utils.show.errors import show_error
from utils.show.table import show_table

pytestmark = pytest.mark.once


def test_table_aligns_words_left_and_numbers_right(capsys):
    show_table(["name", "n", "flag"], [("a", 1, True), ("longer", 12345, False)])
    assert capsys.readouterr().out == "name          n   flag\na             1   True\nlonger   12,345   False\n"


def test_table_without_rows_and_with_a_row_of_the_wrong_length(capsys):
    show_table(["a", "b"], [])
    assert capsys.readouterr().out == "a   b\n"
    with pytest.raises(ValueError, match="a row has 1 cells, but there are 2 headers"):
        show_table(["a", "b"], [(1,)])


def test_show_error_prints_type_and_message(capsys):
    with show_error(ValueError):
        raise ValueError("of this kind " * 20)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("ValueError: of this kind")
    assert max(map(len, lines)) <= 110


def test_show_error_requires_an_error():
    with pytest.raises(AssertionError, match="raised nothing"), show_error():
        pass
    with pytest.raises(KeyError), show_error(ValueError):
        raise KeyError("another")


@pytest.mark.parametrize(
    ("parts", "left"),
    [
        (["\r 10%|#  |", "\r 90%|## |", "\r           \r"], []),  # a progress bar that erases itself
        (["\r 90%|## |", "\r           \rdone\n"], ["done\n"]),
        (["first\n", "abc", "\rd"], ["first\ndbc"]),  # characters that aren't overwritten remain
        (["  two\n", "lines  \n"], ["  two\nlines  \n"]),
    ],
)
def test_carriage_returns_overwrite_as_on_a_terminal(parts, left):
    outputs = [new_output("stream", name="stdout", text=part) for part in parts]
    assert [output.text for output in notebooks.merge_streams(outputs)] == left
