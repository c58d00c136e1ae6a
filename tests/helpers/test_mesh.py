"""Test `make_mesh`: the order of the devices, the types of the axes, and the sizes that it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from jax.sharding import AxisType, Mesh

from utils.mesh import make_mesh


def ids(mesh: Mesh) -> list:
    return np.vectorize(lambda device: device.id)(mesh.devices).tolist()


def test_devices_are_in_row_major_order():
    mesh = make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Auto, AxisType.Auto))
    assert ids(mesh) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert mesh.axis_names == ("x", "y")
    assert dict(mesh.shape) == {"x": 2, "y": 4}


def test_a_mesh_of_the_first_devices():
    assert ids(make_mesh((3,), ("x",))) == [0, 1, 2]


def test_three_axes():
    assert ids(make_mesh((2, 2, 2), ("x", "y", "z"))) == [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]


def test_axes_are_automatic_by_default():
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
def test_invalid_meshes_are_refused(sizes, names, message):
    with pytest.raises(ValueError, match=message):
        make_mesh(sizes, names)


def test_a_wrong_number_of_axis_types_is_refused():
    with pytest.raises(ValueError, match="should match the number of axis_types"):
        make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Auto,))
