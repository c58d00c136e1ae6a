"""Test lesson 08's figure of a mesh axis's route through a grid of chips."""

from __future__ import annotations

from tests.site.interactive_figures.conftest import page_of
from tools.site import interactive_figures

_, (_, _, read_rings) = interactive_figures.FIGURES["08"]
RINGS = read_rings(interactive_figures.cells_by_id("08"))
ROWS, COLUMNS = "rows, back and forth", "columns, back and forth"
BOXES = """() => {
    const svg = document.querySelector('.interactive-figure svg');
    const boxes = [svg, ...svg.children].map((shape) => shape.getBoundingClientRect());
    return boxes.map((box) => [box.left, box.top, box.right, box.bottom]);
}"""


def test_jaxs_hops_are_those_of_the_lesson(open_figure):
    at = open_figure("pod_ring_routes")
    # The titles of the lesson's figure give hops 1 2 1 2 1 2 1 2 for v5e:2x4, and only hops of 1 for v5e:4x2.
    assert "v5e:2x4, as JAX routes it: hops 1 2 1 2 1 2 1 2. The longest step is 2 hops." in at.figure_text()
    assert "the 8 pieces take 12 hops in all; in a ring of neighbours, they would take 8." in at.figure_text()
    assert at.page.locator(".interactive-figure svg rect").count() == 12  # a square for each hop
    assert at.set(axis="v5e:4x2") == (
        "v5e:4x2, as JAX routes it: hops 1 1 1 1 1 1 1 1. Each step is one hop, so the chips form a ring of neighbours."
    )


def test_the_readers_orders(open_figure):
    at = open_figure("pod_ring_routes")
    # In a grid with two chips per row, the last step is 3 hops, from (0, 3) straight back to (0, 0), if the order goes
    # back and forth by rows, and 4 hops, from (1, 3) to (0, 0), if it goes row by row.
    assert at.set(order=ROWS).startswith("v5e:2x4, in the order that you chose instead of JAX's: hops 1 1 1 1 1 1 1 3.")
    assert "hops 1 1 1 1 1 1 1 1. Each step is one hop" in at.set(order=COLUMNS)  # around the edge, as in the lesson
    assert "hops 1 2 1 2 1 2 1 4. The longest step is 4 hops." in at.set(order="row by row")
    # In a grid with four chips per row, (3, 0) to (0, 1) is 4 hops. The squares are (0..1, 0..1) and (2..3, 0..1), and
    # (0, 1) to (2, 0) is 3 hops.
    assert "hops 1 1 1 4 1 1 1 4." in at.set(axis="v5e:4x2")
    assert "hops 1 1 1 3 1 1 1 3." in at.set(order="squares of four")
    assert "hops 1 1 1 1 1 1 1 1." in at.set(order=ROWS)
    assert "hops 1 1 1 1 1 1 1 3." in at.set(order=COLUMNS)


def test_step_by_step(open_figure):
    at = open_figure("pod_ring_routes")
    assert "Step 4, from chip 3 to chip 4: 2 hops, 6 so far." in at.set(step=4)
    at.place.get_by_role("button", name="Next").click()
    assert "Step 5, from chip 4 to chip 5: 1 hop, 7 so far." in at.figure_text()
    assert "Step 8, from chip 7 to chip 0: 2 hops, 12 so far." in at.set(step=8)


def test_the_sixteen_of_the_second_figure(open_figure, bare):
    at = open_figure("pod_ring_routes")
    page = page_of("pod_ring_routes", RINGS)
    at.page.route("**/pod_ring_routes.html", lambda route: route.fulfill(body=page, content_type="text/html"))
    at.page.reload()
    means = "Each step is one hop, so the chips form a ring of neighbours."
    assert at.figure_text() == f"data = 16, as JAX routes it: hops {'1 ' * 15}1. {means}"
    # In the lesson, the last chip is three hops from the first, so the axis runs at half the rate.
    text = at.set(axis="data = 4")
    assert "hops 1 1 1 3, the same in each of the 4 lines. The line isn't closed, so data must come back" in text
    assert text.endswith("over the same wires, 3 hops at half the rate.")
    # The four chips of a row don't form a ring, but those of a square do.
    assert "hops 1 1 1 3, the same" in at.set(order="row by row")
    assert "hops 1 1 1 1, the same in each of the 4 lines. Each step is one hop" in at.set(order="squares of four")
    # In one line of all 16 chips, consecutive squares are 3 hops apart, and (2, 3) to (0, 0) is 5 hops. Row by row,
    # (3, 0) to (0, 1) is 4 hops, and (3, 3) to (0, 0) is 6.
    at.set(axis="data = 16")
    assert f"hops {'1 1 1 3 ' * 3}1 1 1 5. The longest step is 5 hops." in at.figure_text()
    assert f"hops {'1 1 1 4 ' * 3}1 1 1 6. The longest step is 6 hops." in at.set(order="row by row")
    assert f"hops {'1 ' * 15}3. The longest step is 3 hops." in at.set(order=ROWS)
    for width in (390, 1280):
        at.page.set_viewport_size({"width": width, "height": 700})
        for way in ("data = 16", "data = 4"):
            at.set(axis=way)
            # Read all boxes in one call, because the picture is redrawn when the window's size changes.
            frame, *boxes = at.page.evaluate(BOXES)
            assert len(boxes) > 16
            for left, top, right, bottom in boxes:
                assert frame[0] - 1 <= left and right <= frame[2] + 1
                assert frame[1] - 1 <= top and bottom <= frame[3] + 1
