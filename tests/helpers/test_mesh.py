from __future__ import annotations

import numpy as np
import pytest
from jax.sharding import AxisType, Mesh

from utils.mesh import make_mesh


def ids(mesh: Mesh) -> list:
    return np.vectorize(lambda device: device.id)(mesh.devices).tolist()


def test_devices_stand_row_by_row():
    mesh = make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Auto, AxisType.Auto))
    assert ids(mesh) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert mesh.axis_names == ("x", "y")
    assert dict(mesh.shape) == {"x": 2, "y": 4}


def test_fewer_devices_than_there_are():
    assert ids(make_mesh((3,), ("x",))) == [0, 1, 2]


def test_three_axes():
    assert ids(make_mesh((2, 2, 2), ("x", "y", "z"))) == [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]


def test_axes_are_automatic_unless_given():
    assert make_mesh((8,), ("x",)).axis_types == (AxisType.Auto,)
    assert make_mesh((8,), ("x",), axis_types=(AxisType.Explicit,)).axis_types == (AxisType.Explicit,)


@pytest.mark.parametrize(
    ("sizes", "names", "message"),
    [
        ((4, 4), ("x", "y"), r"4 x 4 needs 16 devices, and there are 8"),
        ((2, 4), ("x", "x"), r"\('x', 'x'\)"),
        ((0, 4), ("x", "y"), r"\(0, 4\)"),
        ((-2, 4), ("x", "y"), r"\(-2, 4\)"),
        ((2, 4), ("x",), "ndim == 2 and len"),
        ((), (), r"got sizes \(\)"),
    ],
)
def test_meshes_that_cannot_be(sizes, names, message):
    with pytest.raises(ValueError, match=message):
        make_mesh(sizes, names)


def test_axis_types_of_another_number():
    with pytest.raises(ValueError, match="should match the number of axis_types"):
        make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Auto,))
