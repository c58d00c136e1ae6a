"""Test the pieces of sharded arrays, and the figures of shardings, meshes, values and resharding."""

from __future__ import annotations

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from matplotlib.colors import to_hex
from matplotlib.patches import Circle, Rectangle

from lesson_helpers.figures.resharding import draw_resharding
from utils.compat import device_text, pcast, spec_text
from utils.mesh import make_mesh
from utils.shard_placement import bytes_arriving, describe, pieces
from utils.show import FIGURE_DATA, draw
from utils.show.notebook_figure import COLORS, Picture, picture


def make_array(shape, spec, sizes=(2, 4), names=("x", "y")):
    """Return zeros, sharded by a spec on a mesh of these sizes and names."""
    return jax.device_put(jnp.zeros(shape), NamedSharding(make_mesh(sizes, names), spec))


def test_pieces_against_a_manual_calculation():
    # x (2 devices) splits the rows into 0-1 and 2-3, and y (4 devices) the columns into pairs. Device 4 i + j has
    # rows 2 i and 2 i + 1 and columns 2 j and 2 j + 1.
    assert pieces(make_array((4, 8), P("x", "y"))) == {
        ((2 * i, 2 * i + 2), (2 * j, 2 * j + 2)): [4 * i + j] for i in range(2) for j in range(4)
    }
    assert pieces(make_array((4, 8), P("x"))) == {((0, 2), (0, 8)): [0, 1, 2, 3], ((2, 4), (0, 8)): [4, 5, 6, 7]}
    assert pieces(make_array((4, 8), P())) == {((0, 4), (0, 8)): list(range(8))}
    assert pieces(make_array((8,), P(("y", "x")))) == {((k, k + 1),): [4 * (k % 2) + k // 2] for k in range(8)}
    assert pieces(make_array((), P())) == {(): list(range(8))}


def test_pieces_of_a_shape_struct_and_of_one_device():
    array = make_array((4, 8), P("x", "y"))
    assert pieces(jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=array.sharding)) == pieces(array)
    assert pieces(jnp.zeros((2, 2))) == {((0, 2), (0, 2)): [0]}


def test_arrays_without_pieces_are_refused():
    with pytest.raises(TypeError, match="ndarray has no sharding"):
        pieces(np.zeros(3))
    with pytest.raises(TypeError, match="no sharding"):
        pieces(jax.ShapeDtypeStruct((3,), jnp.float32))
    gone = make_array((8,), P("x"))
    gone.delete()
    with pytest.raises(ValueError, match="deleted"):
        draw.sharding(gone, title="gone")


def test_shards_in_other_processes_are_refused_with_advice():
    array = SimpleNamespace(
        sharding=SimpleNamespace(device_set=range(8)),
        shape=(8,),
        is_fully_addressable=False,
        addressable_shards=[1] * 4,
    )
    with pytest.raises(ValueError, match=r"only 4 of the array's 8 shards.*ShapeDtypeStruct"):
        draw.shardings({"far away": array})


def test_bytes_arriving():
    """Check the bytes against a manual calculation.

    Before resharding, each device has half of the rows. Afterwards, it has a quarter, which is one row of 8 floats. It
    receives the row's 32 bytes if the row wasn't in its half.
    """
    rows, quarters = make_array((4, 8), P("x")), make_array((4, 8), P("y"))
    assert bytes_arriving(rows, quarters) == {0: 0, 1: 0, 2: 32, 3: 32, 4: 32, 5: 32, 6: 0, 7: 0}
    # Device 4 i + j first has columns 2 j and 2 j + 1, and afterwards only column 4 i + j. Devices 0 and 7 already have
    # their column, and each of the others receives its 4 elements, or 16 bytes.
    pairs, eighths = make_array((4, 8), P(None, "y")), make_array((4, 8), P(None, ("x", "y")))
    assert bytes_arriving(pairs, eighths) == {0: 0, 7: 0, **dict.fromkeys(range(1, 7), 16)}
    assert set(bytes_arriving(eighths, make_array((4, 8), P())).values()) == {28 * 4}
    with pytest.raises(ValueError, match=r"more than their sharding: \(4, 8\) float32, \(8, 8\) float32"):
        bytes_arriving(rows, make_array((8, 8), P()))
    with pytest.raises(ValueError, match=r"the first array is on devices \[0, 1"):
        bytes_arriving(rows, jax.device_put(rows, jax.devices()[0]))


def test_resharding_is_drawn_and_described():
    drawing = draw_resharding(make_array((4, 8), P("x")), make_array((4, 8), P("y")))
    assert "device 1 keeps 8 elements of its new piece and receives 0 bytes" in drawing.alt
    assert "device 2 keeps 0 elements of its new piece and receives 32 bytes" in drawing.alt
    [axes] = [axes for axes in drawing.figure.axes if axes.get_title() == "device 2: 32 bytes"]
    patches = [(patch.get_y(), patch.get_height(), patch.get_hatch()) for patch in axes.patches]
    assert (2, 1, "////") in patches  # row 2 arrives
    assert draw_resharding(make_array((8,), P("x")), make_array((8,), P("y"))).alt
    with pytest.raises(ValueError, match="rank 3 cannot be drawn"):
        draw_resharding(make_array((2, 2, 2), P("x")), make_array((2, 2, 2), P()))


def test_description():
    assert describe(make_array((4, 8), P("x"))) == (
        "an array of shape (4, 8) in 2 pieces: devices 0, 1, 2, 3 hold [0:2, 0:8]; devices 4, 5, 6, 7 hold [2:4, 0:8]."
    )


def drawn(shown: Picture):
    """Return each panel's circles as (device, x, y), and its filled rectangles as (x, y, width, height)."""
    drawn_panels = []
    figures = shown.figure.subfigs or [shown.figure]
    for axes in [axes for figure in figures for axes in figure.axes]:
        circles = [patch for patch in axes.patches if isinstance(patch, Circle)]
        numbers = [int(text.get_text()) for text in axes.texts]
        centres = [(number, *circle.center) for number, circle in zip(numbers, circles, strict=True)]
        boxes = [
            (*p.get_xy(), p.get_width(), p.get_height()) for p in axes.patches if isinstance(p, Rectangle) and p.fill
        ]
        drawn_panels.append((centres, boxes))
    return drawn_panels


@pytest.mark.parametrize(
    ("shape", "spec", "panels"),
    [((), P(), 1), ((16,), P("y"), 1), ((4, 8), P("x", "y"), 1), ((4, 8), P(), 1), ((2, 4, 8), P("x", None, "y"), 2)],
)
def test_every_device_is_drawn_in_its_piece(shape, spec, panels):
    array = make_array(shape, spec)
    drawn_panels = drawn(draw.sharding(array))
    assert len(drawn_panels) == panels
    assert sorted(number for centres, _ in drawn_panels for number, _, _ in centres) == list(range(8))
    assert sum(len(boxes) for _, boxes in drawn_panels) == len(pieces(array))
    for centres, boxes in drawn_panels:
        for _, x, y in centres:
            assert sum(left < x < left + w and top < y < top + h for left, top, w, h in boxes) == 1


def test_unused_panels_are_hidden():
    """Test a rank-3 array in eight planes, which fill eight of nine panels."""
    [*used, unused] = draw.sharding(make_array((8, 2, 2), P(("x", "y")))).figure.subfigs[0].axes
    assert len(used) == 8 and all(panel.axison for panel in used) and not unused.axison


def test_positions_of_rows_and_columns():
    [(centres, _)] = drawn(draw.sharding(make_array((4, 8), P("x", "y"))))
    at = {number: (x, y) for number, x, y in centres}
    assert at[0][1] == at[3][1] < at[4][1]  # x splits the rows, so devices 0 and 3 are above 4
    assert at[0][0] == at[4][0] < at[1][0]  # y splits the columns, so devices 0 and 4 are left of 1


def test_panels_are_side_by_side_with_titles():
    shown = draw.shardings({"before": make_array((4, 8), P("x")), "after": make_array((4, 8), P("y"))})
    assert [part.get_suptitle().split("\n")[0] for part in shown.figure.subfigs] == ["before", "after"]
    assert shown.alt.startswith("before: an array of shape (4, 8)")
    assert "after: an array" in shown.alt


def test_three_in_a_row_and_four_in_two_rows():
    for names, size in (("abc", [3 * 3.1, 2.3]), ("abcd", [2 * 2.7, 2 * 2.3])):
        shown = draw.shardings({name: make_array((4, 8), P("x")) for name in names})
        assert [part.get_suptitle()[0] for part in shown.figure.subfigs] == list(names)
        assert shown.figure.get_size_inches().tolist() == pytest.approx(size)


def test_eight_copies_are_drawn_as_two_rows_of_four():
    figure = draw.sharding(make_array((8, 8), P())).figure
    places = [circle.center for circle in figure.axes[0].patches if isinstance(circle, Circle)]
    assert [len({round(place[i], 6) for place in places}) for i in (1, 0)] == [2, 4]


def test_a_mesh_of_each_rank():
    for sizes in ((8,), (2, 4), (2, 2, 2)):
        shown = draw.mesh(make_mesh(sizes, "xyz"[: len(sizes)]))
        assert sorted(n for centres, _ in drawn(shown) for n, _, _ in centres) == list(range(8))
    assert shown.alt == "A mesh, 'x' of 2 by 'y' of 2 by 'z' of 2; device numbers [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]."


def test_a_permuted_mesh(devices):
    mesh = Mesh(np.array(devices)[[0, 1, 2, 3, 6, 7, 4, 5]].reshape(2, 4), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    assert draw.mesh(mesh).alt.endswith("[[0, 1, 2, 3], [6, 7, 4, 5]].")


def test_arrays_that_cannot_be_drawn():
    with pytest.raises(ValueError, match=r"rank 4 cannot be drawn.*rank 3 or less"):
        draw.sharding(make_array((2, 2, 2, 2), P("x")))
    with pytest.raises(ValueError, match="4 axes cannot be drawn"):
        draw.mesh(make_mesh((2, 2, 2, 1), "abcd"))
    with pytest.raises(ValueError, match="nothing to draw"):
        draw.shardings({})


def test_picture_has_a_description_and_a_background():
    import io

    from matplotlib import pyplot
    from PIL import Image

    figure, _ = pyplot.subplots()
    shown = picture(figure, "An empty plot.")
    assert not pyplot.get_fignums()  # the figure is closed, so that a notebook doesn't show it twice
    data, metadata = shown._repr_mimebundle_()
    assert data["text/plain"] == "Figure: An empty plot."
    assert metadata["image/png"]["alt"] == "An empty plot."
    image = Image.open(io.BytesIO(data["image/png"])).convert("RGBA")
    assert image.getpixel((0, 0)) == (255, 255, 255, 255)  # opaque white, even in dark mode
    assert metadata["image/png"]["width"] == 640  # a plot in pyplot is 6.4 inches wide
    assert image.width == 1024
    assert shown._repr_mimebundle_()[0]["image/png"] == data["image/png"]
    assert FIGURE_DATA not in data
    with_data = shown.with_data({"sizes": [1, 2]})
    assert with_data._repr_mimebundle_() == ({**data, FIGURE_DATA: {"sizes": [1, 2]}}, metadata)
    with pytest.raises(ValueError, match="description"):
        picture(figure, " ")


def test_a_picture_keeps_its_colours():
    """Test eight shades of each of the eight colours, as in lesson 07."""
    import io

    from matplotlib import pyplot
    from matplotlib.colors import to_rgb
    from PIL import Image

    shades = 1 - np.arange(1, 9)[:, None, None] / 8 * (1 - np.array([to_rgb(color) for color in COLORS]))
    figure, axes = pyplot.subplots()
    axes.imshow(shades)
    drawn = io.BytesIO()
    figure.set_layout_engine("tight")
    figure.savefig(drawn, format="png", dpi=160, facecolor="white")
    shown = io.BytesIO(picture(figure, "64 shades.")._repr_mimebundle_()[0]["image/png"])
    want, got = (np.asarray(Image.open(image).convert("RGB")).astype(int) for image in (drawn, shown))
    assert abs(got - want).max() <= 12  # on a scale from 0 to 255


def test_notation_of_specs_and_devices(devices):
    assert spec_text(P("x", None)) == "P('x', None)"
    assert spec_text(P(("x", "y"))) == "P(('x', 'y'))"
    assert spec_text(P()) == "P()"
    assert device_text(devices[3]) == "cpu:3"


def ring_of_eight(values):
    """Return the values, sharded along axis 0 over eight devices."""
    return jax.device_put(jnp.asarray(values), NamedSharding(make_mesh((8,), ("i",)), P("i")))


def test_values_are_drawn_in_the_colour_of_their_owner():
    before = ring_of_eight(jnp.array([3.0, 1, 4, 1, 5, 9, 2, 6]))  # two devices have a 1, so the value gets no colour
    after = ring_of_eight(jnp.array([6.0, 3, 1, 4, 31, 5, 9, 2]))
    drawn = draw.values({"before": before, "a shift\nand a sum": after})
    assert drawn.data == [[3], [1], [4], [1], [5], [9], [2], [6]]
    [axes] = drawn.figure.axes
    faces = [to_hex(p.get_facecolor()).upper() for p in axes.patches if p.get_height() == 1 and p.get_fill()]
    white = "#FFFFFF"
    assert faces[:8] == [COLORS[0], white, COLORS[2], white, *COLORS[4:8]]
    assert faces[8:] == [COLORS[7], COLORS[0], white, COLORS[2], white, *COLORS[4:7]]
    texts = [text.get_text() for text in axes.texts]
    assert texts[:9] == ["3", "1", "4", "1", "5", "9", "2", "6", "before"]
    assert "a shift and a sum: device 0 holds 6; device 1 holds 3;" in drawn.alt
    assert draw.values({"all": ring_of_eight(jnp.full(8, 2.5))}).alt.startswith("all: every device holds 2.5.")


def test_values_of_rank_one_are_drawn_as_a_column_and_large_arrays_are_refused():
    column = draw.values({"eight each": ring_of_eight(jnp.arange(64.0))})
    assert column.data == [list(range(8 * device, 8 * device + 8)) for device in range(8)]
    cells = [p.get_xy() for p in column.figure.axes[0].patches if p.get_height() == 1 and p.get_fill()]
    assert len(cells) == 64
    assert len({x for x, _ in cells[:8]}) == 1
    for arrays, message in [
        ({}, "nothing to draw"),
        ({"big": ring_of_eight(jnp.zeros(128))}, r"'big' has shards of shape \(16,\)"),
        ({"x": ring_of_eight(jnp.zeros(8)), "y": jnp.zeros(1)}, r"'y' is on devices \[0\]"),
    ]:
        with pytest.raises(ValueError, match=message):
            draw.values(arrays)


def test_pcast_makes_an_array_varying_on_every_version():
    seen = []

    def look(x):
        for value in (
            pcast(jnp.zeros(3), ("y", "x"), to="varying"),
            pcast(jnp.zeros(3), "y", to="varying"),
            jnp.zeros(3),
        ):
            seen.append(sorted(set("xy") & set(str(jax.typeof(value)))))
        return x

    mesh = make_mesh((2, 4), ("x", "y"))
    jax.shard_map(look, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(jnp.zeros((4, 8)))
    assert seen == [["x", "y"], ["y"], []]
    with pytest.raises(ValueError, match="cannot cast from varying to 'invarying'"):
        pcast(jnp.zeros(3), "y", to="invarying")
