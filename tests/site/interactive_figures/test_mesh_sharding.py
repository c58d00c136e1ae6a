"""Test lesson 02's figure, which shows the effect of a spec, or JAX's error message, on any mesh of eight devices."""

from __future__ import annotations

import re

import pytest

from tests.cell_outputs import alt_text, printed_text
from tests.site.interactive_figures.conftest import cell_of


def test_each_layout_of_the_lesson_s_figures_is_drawn_as_there(open_figure):
    at = open_figure("mesh_sharding")
    # In the 4 by 2 mesh, device 6 is at (3, 0), so it stores the fourth row and the first half of the columns.
    assert (
        "gives float32[4@x,8@y]: 8 pieces of (1, 4), 1 copy of each. Device 6 is at x = 3, y = 0 and stores [3:4, 0:4]."
        in at.figure_text()
    )
    text = at.set(mesh="2 by 4")
    assert "8 pieces of (2, 2), 1 copy of each. Device 6 is at x = 1, y = 2 and stores [2:4, 4:6]." in text
    figures = (
        alt_text(cell_of("02", "layouts")),
        alt_text(cell_of("02", "cut-count")),
        alt_text(cell_of("02", "tuple-order")),
    )
    shown_specs = re.findall(
        r"(P\(.*?\)): an array of shape \(4, 8\) in (\d) pieces?: (.*?)\.(?: |$)", " ".join(figures)
    )
    assert len(shown_specs) == 7
    for spec, count, pieces in shown_specs:
        at.set(spec=spec)
        for devices, piece in re.findall(r"devices? ([\d, ]+) holds? (\[.*?\])", pieces):
            for device in map(int, devices.split(", ")):
                text = at.set(device=device)
                assert f"and stores {piece}" in text, (spec, device)
                assert f"{8 // int(count)} cop" in text
                others = ", ".join(other for other in devices.split(", ") if int(other) != device)
                assert text.endswith(f"device{'s' * (', ' in others)} {others}." if others else f"{piece}.")
    assert at.page.locator(".interactive-figure svg circle").count() == 16  # eight for the mesh and eight for the array


@pytest.mark.parametrize(
    ("spec", "array", "error"),
    [
        ("P('x', 'x')", "(4, 8)", "DuplicateSpecError"),
        ("P('rows')", "(4, 8)", "ValueError"),
        ("P('y')", "(10, 3)", "IndivisibleError"),
    ],
)
def test_what_the_lesson_shows_that_jax_refuses_is_refused_for_the_same_reason(open_figure, spec, array, error):
    at = open_figure("mesh_sharding")
    both = printed_text(cell_of("02", "refused")).strip().split("\n\n")
    lines = dict(zip(("P('x', 'x')", "P('rows')"), both, strict=True))
    lines["P('y')"] = printed_text(cell_of("02", "uneven-error"))
    wanted = " ".join(lines[spec].split())
    text = at.set(mesh="2 by 4", spec=spec, array=array)
    assert text.startswith(f"JAX rejects {spec}. {error}")
    assert array == "(10, 3)" or wanted.startswith(error)
    compared = 0
    for theirs, ours in {
        r"duplicate entries for `(\w+)`": r"duplicate entries for (\w+)\.",
        r"Resource axis: (\w+) of": r"(\w+) is not found",
        r"array axis (\d) is partitioned": r"array axis (\d) is split",
        r"partitioned (\d) times": r"split (\d) ways",
        r"dimension size is (\d+)": r"its size is (\d+)",
    }.items():
        if match := re.search(theirs, wanted):
            assert match[1] == re.search(ours, text)[1]
            compared += 1
    assert compared, "JAX's message has changed"
    assert at.page.locator(".interactive-figure svg circle").count() == 8  # only the mesh's circles


def test_other_meshes_and_what_jax_says_first(open_figure):
    at = open_figure("mesh_sharding")
    # In the 4 by 2 mesh, device 6 is at (3, 0), so it stores the fourth pair of rows and the first half of the columns.
    assert "pieces of (2, 4), 1 copy of each. Device 6 is at x = 3, y = 0 and stores [6:8, 0:4]." in at.set(
        mesh="4 by 2", array="(8, 8)"
    )
    # Ten rows can be split over 2 devices, but not over 4 or 8. An axis of one device splits nothing.
    assert "2 pieces of (5, 3), 4 copies of each" in at.set(mesh="2 by 4", array="(10, 3)", spec="P('x')")
    assert "IndivisibleError: array axis 0 is split 8 ways, but its size is 10." in at.set(mesh="8 by 1")
    assert "gives float32[10@x,3]: replicated, 8 copies of (10, 3)" in at.set(mesh="1 by 8")
    # JAX 0.10.2 first looks for duplicate names, then for unknown names, and then checks the rank and the sizes.
    assert "DuplicateSpecError" in at.set(spec="P('rows', 'x', 'x')")
    assert "rows is not found" in at.set(spec="P('rows', None, None)")
    assert "rank of at least 3" in at.set(spec="P(('x', 'y'), None, None)")
    assert "None is not found" in at.set(spec="P(('x', None))")


@pytest.mark.parametrize("typed", ["P('x',)", 'P("x")', "P( ( 'x' ) , None)", "P(‘x’)", "P((('x',)))", "P('x', ())"])
def test_a_spec_is_read_as_python_reads_it(open_figure, typed):
    assert "2 pieces of (2, 8), 4 copies" in open_figure("mesh_sharding").set(mesh="2 by 4", spec=typed)


@pytest.mark.parametrize(
    "typed", ["", "P", "P(", "P('x", "P(x)", "'x'", "P(,)", "P('x' 'y')", "P('x'))", "P(1)", "P((('x', 'y'),))"]
)
def test_what_is_no_spec_says_how_one_is_written(open_figure, typed):
    at = open_figure("mesh_sharding")
    assert "isn't a valid spec" in at.set(spec=typed)
    assert "8 pieces" in at.set(spec="P('x', 'y')")
