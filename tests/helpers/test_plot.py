"""Test plots of lines, bars, rings and masks: the drawing, its description, and the arguments that are refused."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_hex

from lesson_helpers.figures.masks import draw_masks
from lesson_helpers.figures.pod_axes import draw_rings
from utils.show import plot
from utils.show.alt_text import format_number
from utils.show.notebook_figure import COLORS

X = dict(xlabel="n")


def test_lines_have_the_given_points_and_differ_without_colour():
    shown = plot.lines({"up": [0, 1, 2], "down": ([0, 2], [2, 0])}, xlabel="step", ylabel="loss")
    [axes] = shown.figure.axes
    up, down = axes.lines
    assert up.get_xydata().tolist() == [[0, 0], [1, 1], [2, 2]]
    assert down.get_xydata().tolist() == [[0, 2], [2, 0]]
    assert [to_hex(line.get_color()).upper() for line in (up, down)] == list(COLORS[:2])
    assert up.get_linestyle() != down.get_linestyle() and up.get_marker() != down.get_marker()
    assert [text.get_text() for text in shown.figure.legends[0].get_texts()] == ["up", "down"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("step", "loss")
    assert shown.alt == "loss against step. up rises from 0 at 0 to 2 at 2; down falls from 2 at 0 to 0 at 2."


def test_eight_lines_and_eight_bars_all_differ():
    drawn = plot.lines({f"line {i}": [i, i + 1] for i in range(8)}, **X).figure.axes[0].lines
    assert len({line._unscaled_dash_pattern[1] and tuple(line._unscaled_dash_pattern[1]) for line in drawn}) == 8
    assert len({line.get_color() for line in drawn}) == len({line.get_marker() for line in drawn}) == 8
    parts = plot.bars({f"part {i}": [1] for i in range(8)}, ["a"], **X).figure.axes[0].containers
    assert len({part[0].get_hatch() for part in parts}) == 8


def test_a_line_covered_by_others_is_wider():
    y = np.linspace(1, 2, 50)
    shown = plot.lines({"a": y, "b": y + 1e-6, "c": y - 1e-6, "other": 3 - y}, **X, ylabel="y")
    a, b, c, other = (line.get_linewidth() for line in shown.figure.axes[0].lines)
    assert a > b + 2 > c + 4
    assert c == other
    assert shown.alt == (
        "y against n from 0 to 49. a rises from 1 to 2; other falls from 2 to 1. b and c coincide with a. "
        "a and other cross at 24.5. b and other cross at 24.5. c and other cross at 24.5."
    )


def test_descriptions_of_lines():
    expected_words = {
        "rises": ([1, 2, 3, 4, 5], "a rises from 1 to 5"),
        "falls": ([5, 4, 3.4, 2, 1], "a falls from 5 to 1"),
        "wavers": ([5, 3, 3.1, 2, 1], "a falls unsteadily from 5 to 1"),
        "level": ([7, 7, 7, 7, 7], "a stays at 7"),
        "a hill": ([0, 3, 9, 3, 1], "a goes from 0 to 1, highest 9 at 20"),
        "a wave": ([0, 5, 0, -5, 0], "a goes from 0 to 0, highest 5 at 10 and lowest -5 at 30"),
        "late": ([2, 2, 2, 2, 6], "a stays near 2 until 30, then rises to 6"),
        "early": ([9, 5, 1, 1, 1], "a falls from 9, then stays near 1 from 20 onwards"),
    }
    for case, (y, words) in expected_words.items():
        shown = plot.lines({"a": y}, [0, 10, 20, 30, 40], xlabel="n", ylabel="y")
        assert shown.alt == f"y against n from 0 to 40. {words}.", case


def test_logarithmic_axes_and_where_lines_cross_on_them():
    x = np.array([1, 2, 50, 100])
    shown = plot.lines({"x": x, "100 / x": 100 / x}, x, log="xy", xlabel="x", ylabel="y")
    assert shown.alt == (
        "y against x from 1 to 100, both logarithmic. x rises from 1 to 100; 100 / x falls from 100 to 1. "
        "x and 100 / x cross at 10."
    )
    [axes] = shown.figure.axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1", "2", "50", "100"]  # the measured points
    often = plot.lines({"a": [0, 1] * 4, "b": [1, 0] * 4}, **X)
    assert "a and b cross 7 times." in often.alt


def test_marks():
    shown = plot.lines(
        {"a": [1, 10, 100]},
        xlabel="x",
        ylabel="y",
        log="y",
        marks={"your guess": (1.5, None), "the limit": (None, 16), "best": ([0, 2], [1, 100])},
        ylim=(1, 50),
    )
    assert shown.alt == (
        "y against x from 0 to 2, y logarithmic. a rises from 1 to 100. your guess: a vertical line at 1.5. "
        "the limit: a horizontal line at 16. best: (0, 1) and (2, 100)."
    )
    [axes] = shown.figure.axes
    _, upright, across, points = axes.lines
    assert list(upright.get_xdata()) == [1.5, 1.5] and list(across.get_ydata()) == [16, 16]
    assert points.get_xydata().tolist() == [[0, 1], [2, 100]] and points.get_linestyle() == "None"
    low, high = axes.get_ylim()
    assert low < 1 and high > 100  # widened to include the marked points


def test_panels_share_an_axis_only_with_a_single_label():
    series = {"left": {"a": [1, 2]}, "right": {"a": [10, 30], "b": [5, 6]}}
    marks = {"right": {"limit": 20}}
    shared = plot.bars(series, ["one", "two"], xlabel="ms", marks=marks)
    left, right = shared.figure.axes
    assert (left.get_title(), right.get_title()) == ("left", "right")
    assert left.get_xlim() == right.get_xlim() and left.get_xlim()[0] == 0 and left.get_xlim()[1] > 30
    assert left.containers[0][0].get_facecolor() == right.containers[0][0].get_facecolor()
    assert list(right.lines[0].get_xdata()) == [20, 20]
    assert shared.alt == (
        "left: ms. one: 1; two: 2. right: ms. one: a 10, b 5; two: a 30, b 6. limit: a vertical line at 20."
    )
    own = plot.bars(series, ["one", "two"], xlabel=["ms", "GB"])
    assert own.figure.axes[0].get_xlim()[1] < 3 and own.figure.axes[1].get_xlim()[1] > 30
    assert [axes.get_xlabel() for axes in own.figure.axes] == ["ms", "GB"]


def widths(axes):
    """Return each part's bars as (left, width), by the part's name."""
    return {part.get_label(): [(bar.get_x(), bar.get_width()) for bar in part] for part in axes.containers}


def test_stacked_bars_are_end_to_end_and_others_are_separate():
    parts = {"given": [1, 15.25], "rest": [0.5, 5.27]}
    shown = plot.bars(parts, ["FSDP", "data"], xlabel="GB", stacked=True, numbers=True, marks={"a chip has 16": 16})
    [axes] = shown.figure.axes
    assert widths(axes) == {"given": [(0, 1), (0, 15.25)], "rest": [(1, 0.5), (15.25, 5.27)]}
    assert [text.get_text() for text in axes.texts] == ["1.5", "20.5", "a chip has 16"]  # the parts' sums, and the mark
    assert [text.get_text() for text in shown.figure.legends[0].get_texts()] == ["given", "rest"]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["FSDP", "data"]
    assert axes.get_ylim() == (1.5, -0.5)  # the first bar is at the top
    assert shown.alt == (
        "GB. FSDP: 1.5 (given 1, rest 0.5); data: 20.5 (given 15.2, rest 5.27). a chip has 16: a vertical line at 16."
    )
    beside = plot.bars(parts, ["FSDP", "data"], xlabel="GB", numbers=True)
    [axes] = beside.figure.axes
    assert widths(axes) == {"given": [(0, 1), (0, 15.25)], "rest": [(0, 0.5), (0, 5.27)]}
    given, rest = ([(bar.get_y(), bar.get_y() + bar.get_height()) for bar in part] for part in axes.containers)
    assert given[0][1] <= rest[0][0] + 1e-9 and rest[0][1] < given[1][0]
    assert beside.alt == "GB. FSDP: given 1, rest 0.5; data: given 15.2, rest 5.27."


def test_bars_with_a_title_and_text_ticks():
    shown = plot.bars(
        {"counted": [3, 0]},
        ["a", "b"],
        xlabel="kB",
        title="Sent",
        marks={"by hand": 9},
        xticks={0: "no", 5: "yes"},
    )
    [axes] = shown.figure.axes
    assert shown.alt == "Sent. kB. a: 3; b: 0. by hand: a vertical line at 9."
    assert [text.get_text() for text in axes.get_xticklabels()] == ["no", "yes"]
    low, high = axes.get_xlim()
    assert low == 0 and high > 9  # wide enough to include the mark


@pytest.mark.parametrize(
    "shown",
    [
        plot.lines({f"a rather long name, number {i}": [i, 1] for i in range(8)}, xlabel="n", ylabel="ms"),
        plot.bars({title: {"x": [1, 2], "y": [2, 1]} for title in "abc"}, ["a", "b"], xlabel="n", title="A title"),
        plot.bars({"one": [1, 2, 3], "two": [3, 2, 1]}, ["a", "b", "c"], xlabel="n", numbers=True, title="A title"),
        plot.bars({"one": range(30)}, [f"name {i}" for i in range(30)], xlabel="n", marks={"limit": 25}),
    ],
)
def test_texts_do_not_overlap(shown):
    shown._repr_mimebundle_()  # this lays out the figure
    [legend] = shown.figure.legends
    boxes = [legend.get_window_extent(), *(axes.get_tightbbox() for axes in shown.figure.axes)]
    boxes += [text.get_window_extent() for text in shown.figure.texts]
    for i, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:i])
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= shown.figure.bbox.x1 and box.y1 <= shown.figure.bbox.y1
    for axes in shown.figure.axes:
        labels = [text.get_window_extent() for text in axes.get_yticklabels() if text.get_text()]
        assert not any(a.overlaps(b) for i, a in enumerate(labels) for b in labels[:i])


def test_a_legend_that_would_repeat_a_title_or_label_is_left_out():
    panels = {"sent": {"a step": [1]}, "stored": {"a step": [2]}}
    assert not plot.bars(panels, ["FSDP"], xlabel=["MB", "GB"]).figure.legends
    assert not plot.bars({"MB": [1]}, ["FSDP"], xlabel="MB sent").figure.legends
    assert plot.bars({"a step": [1]}, ["FSDP"], xlabel="MB sent").figure.legends


@pytest.mark.parametrize(
    ("series", "more", "message"),
    [
        ({}, {}, "nothing to draw: give a name and its numbers"),
        ({"a": []}, {}, r"'a' has shape \(0,\): give a list of one or more numbers"),
        ({"a": [[1, 2]]}, {}, r"'a' has shape \(1, 2\)"),
        ({"a": [1, 2, 3]}, {"x": [1, 2]}, "'x of a' has 2 numbers, but 3 are needed"),
        ({"a": ([1, 1], [1, 2])}, {}, "the x values of 'a' must increase"),
        ({"a": (1, 2, 3)}, {}, r"'a' is a tuple of 3: give y, or the pair \(x, y\)"),
        ({"a": [1, float("nan")]}, {}, "'a' has nan at index 1"),
        ({"a": [float("inf")]}, {}, "'a' has inf at index 0"),
        ({"a": [1, 0]}, {"log": "y"}, "'a' has 0 at index 1, which a logarithmic axis cannot show"),
        ({"a": [1, 2]}, {"log": "x"}, "'x of a' has 0 at index 0"),
        ({"a": [1]}, {"log": "z"}, "log must be 'x', 'y', 'xy' or '', not 'z'"),
        ({"a": [1]}, {"marks": {"guess": 3}}, r"the mark 'guess' is 3: give the pair \(x, y\)"),
        ({"a": [1]}, {"marks": {"guess": (None, None)}}, "for a line, one of the two is None"),
        ({"a": [1]}, {"marks": {"guess": ([1, 2], [3])}}, "'guess' has 2 values of x and 1 of y"),
        ({"a": [1]}, {"marks": {"guess": (None, 0)}, "log": "y"}, "'guess' has 0 at index 0"),
        ({"a": [1]}, {"marks": {name: (1, 1) for name in "bcde"}}, "4 marks cannot be told apart; draw up to 3"),
        ({str(i): [1] for i in range(9)}, {}, "9 lines cannot be told apart; draw up to 8"),
    ],
)
def test_lines_refuses_invalid_arguments(series, more, message):
    with pytest.raises(ValueError, match=message):
        plot.lines(series, **{**X, **more})


@pytest.mark.parametrize(
    ("series", "more", "message"),
    [
        ({}, {}, "nothing to draw"),
        ({"left": {}}, {}, "nothing to draw"),
        ({"a": [1]}, {}, "'a' has 1 numbers, but 2 are needed"),
        ({"a": [1, float("nan")]}, {}, "'a' has nan at index 1"),
        ({"a": [1, -2]}, {}, "'a' has -2: a bar cannot have a negative length"),
        ({"left": {"a": [1, 2]}}, {"marks": {"a": 1}}, r"marks for 'a', but the panels are \['left'\]"),
        ({"left": {"a": [1, 2]}}, {"xlabel": ["x", "y"]}, r"2 labels for 1 panel\(s\): give one"),
        ({name: {"a": [1, 2]} for name in "abcd"}, {}, "4 panels do not fit side by side; draw up to 3"),
        ({"a": [1, 2]}, {"marks": {"guess": float("nan")}}, "'guess' has nan"),
        ({str(i): [1, 2] for i in range(9)}, {}, "9 parts cannot be told apart"),
    ],
)
def test_bars_refuses_invalid_arguments(series, more, message):
    with pytest.raises(ValueError, match=message):
        plot.bars(series, ["x", "y"], **{**X, **more})


def test_format_number():
    values = [0, -0.0, 16, 13790, 2048, 409101, 1e8, 20.516, 0.000972, 1.5e-17, 3.2e12, 1234.5, -0.25]
    formatted = "0 0 16 13,790 2,048 409,101 100,000,000 20.5 0.000972 1.5e-17 3.2e12 1,230 -0.25"
    assert [format_number(value) for value in values] == formatted.split()


def test_a_ring_is_closed_if_its_ends_are_neighbours():
    ring = np.array([(0, 0), (1, 0), (1, 1), (0, 1)])[:, None]  # one line of four chips
    rows = np.stack(np.meshgrid(range(3), range(2), indexing="ij"), axis=-1)  # two lines of three chips
    shown = draw_rings({"a ring": ring, "rows": rows})
    assert shown.alt == (
        "Lines through a grid of chips, by their corners. a ring: (0, 0), (1, 0), (1, 1), (0, 1), and back to the "
        "first; rows: (0, 0), (2, 0); then: (0, 1), (2, 1)."
    )
    assert shown.data == [[[[0, 0], [1, 0], [1, 1], [0, 1]]], [[[x, y] for x in range(3)] for y in range(2)]]
    left, right = shown.figure.axes
    assert [line.get_xydata().tolist() for line in left.lines] == [[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]]
    assert [len(line.get_xydata()) for line in right.lines] == [3, 3]
    assert [text.get_text() for text in right.texts] == ["0", "1", "2"] * 2
    with pytest.raises(ValueError, match="nothing to draw"):
        draw_rings({})
    with pytest.raises(ValueError, match=r"the coordinates of 'a' have shape \(4, 2\), not \(chips, lines, 2\)"):
        draw_rings({"a": ring[:, 0]})


def test_bars_with_a_start_position():
    shown = plot.bars({"a": [1, 2], "b": [3, 0]}, ["x", "y"], xlabel="", stacked=True, begin=[4, 5], alt="words")
    bars = [[(bar.get_x(), bar.get_width()) for bar in part] for part in shown.figure.axes[0].containers]
    assert bars == [[(4, 1), (5, 2)], [(5, 3), (7, 0)]]
    for wrong in ({"stacked": True}, {"alt": "words"}):
        with pytest.raises(ValueError, match="need stacked=True"):
            plot.bars({"a": [1]}, ["x"], xlabel="", begin=[1], **wrong)


def test_a_mask_counts_each_devices_pairs():
    """Compare the pairs with a manual count, for two devices with two tokens each.

    In text order, tokens 0 and 1 see 1 + 2 keys, and tokens 2 and 3 see 3 + 4. In zig-zag order, tokens 0 and 3 see
    1 + 4, and tokens 1 and 2 see 2 + 3.
    """
    drawn = draw_masks({"in order": [[0, 1], [2, 3]], "zig-zag": [[0, 3], [1, 2]]})
    assert "in order: devices 0 to 1 see 3, 7 pairs; zig-zag: devices 0 to 1 see 5, 5 pairs." in drawn.alt
    rounds = [text.get_text() for text in drawn.figure.axes[0].texts]
    assert rounds == ["1", "2", "2", "1"]  # in round 2, devices 0 and 1 use each other's keys
    alpha = drawn.figure.axes[0].images[0].get_alpha()
    assert (np.asarray(alpha) > 0.5).tolist() == np.tril(np.ones((4, 4), bool)).tolist()


@pytest.mark.parametrize("wrong", [{}, {"a": [0, 1]}, {"a": [[0, 0], [1, 2]]}])
def test_a_mask_refuses_missing_or_repeated_tokens(wrong):
    with pytest.raises(ValueError, match=r"nothing to draw|each once"):
        draw_masks(wrong)
