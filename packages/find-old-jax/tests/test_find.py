"""Test the findings: names in every notation, guards, targets, and every kind of file that contains Python."""

from __future__ import annotations

import json
import time

import pytest
from find_old_jax.find import NotPython, examine, find, report
from find_old_jax.old_apis import ROWS, OldApi
from find_old_jax.read import Unreadable, files
from find_old_jax.release_names import Record, parse_version

NEWEST = Record()


def names(code: str, target: str | None = None, severity: str = "gone") -> list[str]:
    return [one.name for one in find(code, target=target) if one.severity == severity]


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("import jax as j\nj.tree_map", "jax.tree_map"),
        ("from jax import tree_util as tu\ntu.tree_multimap", "jax.tree_util.tree_multimap"),
        ("import jax.experimental.optimizers as o", "jax.experimental.optimizers"),
        ("import jax\nmapped = jax\nmapped.tree_leaves", "jax.tree_leaves"),
        ("import jax\ngetattr(jax, 'tree_map')", "jax.tree_map"),
        ("import importlib\nimportlib.import_module('jax.experimental.maps')", "jax.experimental.maps"),
        ("from jax.numpy import *\nproduct(3)", "jax.numpy.product"),
        ("from jax.config import config", "jax.config.config"),
        ("import jax\n@jax.soft_pmap\ndef f(x): ...", "jax.soft_pmap"),
        ("import jax\ndef f(k: jax.random.KeyArray): ...", "jax.random.KeyArray"),
        ("import jax.core\njax.core.Primitive", "jax.core.Primitive"),
        ("from jax.core import axis_frame", "jax.core.axis_frame"),
        ("import jax\njax.config.update('jax_array', True)", "jax.config jax_array"),
        ("import jax.numpy as jnp\njnp.clip(3, a_min=2)", "jax.numpy.clip(a_min=)"),
        ("import jax\njax.make_mesh(axis_shapes=(1,), axis_names='i')", "jax.make_mesh(axis_shapes=)"),
        ("import jax\njax.shard_map(abs, 1)", "jax.shard_map()"),
        ("from functools import partial\nimport jax\npartial(jax.jit, in_axis_resources=1)", "jax.jit(in_axis_resources=)"),
        ("from jax.experimental.shard_map import shard_map\nshard_map(abs, check_vma=False)",
         "jax.experimental.shard_map.shard_map(check_vma=)"),
        ("import jax\njax.jit(abs).lower(1).compiler_ir(dialect='mhlo')", "compiler_ir('mhlo')"),
        ("import jax\njax.typeof(1).vma", "jax.typeof(x).vma"),
        ("from flax import optim", "flax.optim"),
        ("from jax.experimental import maps\nmaps.Mesh(d, 'i')", "jax.experimental.maps.Mesh"),
        ("import jax\njax.config.enable_omnistaging()", "jax.config.enable_omnistaging"),
        ("from jax import config\nconfig.FLAGS.jax_enable_x64", "jax.config.FLAGS"),
        ("from jax.config import config\nconfig.enable_omnistaging()", "jax.config.enable_omnistaging"),
        ("import jax\nprint(jax.config.jax_array)", "jax.config.jax_array"),
        ("from jax.interpreters import mlir\nmlir.ir_constants(x, canonicalize_types=True)",
         "jax.interpreters.mlir.ir_constants(canonicalize_types=)"),
        ("from jax.interpreters import mlir\nmlir.emit_python_callback(c, f, t, o, a, r, False)",
         "jax.interpreters.mlir.emit_python_callback()"),
        ("from jax.extend.core import gensym\ngensym([jaxpr])", "jax.extend.core.gensym()"),
        ("import jax\njax.flatten_util.ravel_pytree(x)", "jax.flatten_util"),
        ("import jax\njax.remat(abs, concrete=True)", "jax.remat(concrete=)"),
        ("from flax.optim import Adam", "flax.optim.Adam"),
    ],
)  # fmt: skip
def test_names_are_found_in_every_notation(code, name):
    assert name in names(code)


@pytest.mark.parametrize(
    "code",
    [
        "try:\n    from jax.experimental import optimizers\nexcept ImportError:\n    pass",
        "try:\n    import jax.tree\nexcept ImportError:\n    from jax import tree_map",
        "try:\n    f = jax.tree_map\nexcept AttributeError:\n    f = jax.tree.map",
        "if hasattr(jax, 'tree_map'):\n    jax.tree_map(id, 1)",
        "f = jax.tree_map if hasattr(jax, 'tree_map') else jax.tree.map",
        "f = getattr(jax, 'tree_map', None)",
        "if jax.__version_info__ < (0, 4, 26):\n    jax.tree_map(id, 1)",
        "if Version(jax.__version__) < Version('0.4.26'):\n    jax.tree_map(id, 1)",
        "OLD = jax.__version__.split('.') < ['0', '4']\nif OLD:\n    jax.tree_map(id, 1)",
        "try:\n    f = jax.tree_map\nexcept Exception:\n    f = jax.tree.map",
        "def f(x):\n    if hasattr(x, 'device_buffers'):\n        return x.device_buffers",
        "def f(x):\n    if not hasattr(x, 'device_buffers') or x is None:\n        return\n    x.device_buffers",
        "def f(x):\n    import jax\n    if hasattr(jax, 'tree'):\n        return jax.tree.map(id, x)\n    return jax.tree_map(id, x)",
        "def f(x):\n    if module_version('jax') < (0, 4):\n        return jax.tree_map(id, x)\n    return jax.tree.map(id, x)",
        "try:\n    m = jax.make_mesh(axis_sizes=(8,))\nexcept TypeError:\n    m = jax.make_mesh(axis_shapes=(8,))",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from jax.random import KeyArray",
        "jax.tree_map(id, 1)  # noqa: old-jax",
        "def f(jax):\n    return jax.tree_map",
        "jax = object()\njax.tree_map",
        "[jax.tree_map for jax in ()]",
        "from jax import random\ndef f():\n    random = object()\n    random.shuffle(1)",
        "from mine import jax\njax.tree_map",
        "def f():\n    import numpy as jax\n    jax.product(1)",
        "jax._src.nothing.of.this",
    ],
)
def test_it_respects_guards_and_scopes(code):
    assert names(f"import jax\n{code}") == []


@pytest.mark.parametrize(
    "code",
    [
        "if jax.__version__ >= '0.4.26':\n    pass\nelse:\n    jax.tree_map(id, 1)",  # '0.12' < '0.4.26' as strings
        "try:\n    jax.tree_map(id, 1)\nexcept ValueError:\n    pass",
        "if not hasattr(jax, 'tree_map'):\n    jax.tree_map(id, 1)",
        "def f(x):\n    if not hasattr(jax, 'tree'):\n        return x\n    return jax.tree_map(id, x)",
        "if hasattr(jax, 'Array'):\n    jax.tree_map(id, 1)",
        "def f(x):\n    if hasattr(x, 'shape'):\n        jax.tree_map(id, x)",
        "def f(x):\n    if hasattr(x, 'tree_map'):\n        jax.tree_map(id, x)",
        "def f(x):\n    if not hasattr(x, 'shape'):\n        return x\n    jax.tree_map(id, x)",
        "if hasattr(jax.lax.psum, 'tree_map'):\n    jax.tree_map(id, 1)",
        "try:\n    jax.tree_map(id, 1)\nexcept AttributeError:\n    pass",
        "try:\n    jax.tree_map(id, 1)\nexcept Exception as e:\n    print(e)",
        "try:\n    jax.tree_map(id, 1)\nexcept Exception:\n    print('no')\n    raise",
        "try:\n    jax.tree_map(id, 1)\nexcept ImportError:\n    from jax.tree import map",
        "try:\n    def f():\n        jax.tree_map(id, 1)\nexcept AttributeError:\n    f = None",
        "import unittest\nif not hasattr(jax, 'pmap'):\n    raise unittest.SkipTest\njax.tree_map(id, 1)",
        "import unittest\nif jax.version.__version_info__ > (0, 4):\n    raise unittest.SkipTest\njax.tree_map(id, 1)",
        "import unittest\nif module_version('jax') < (0, 4):\n    raise unittest.SkipTest\njax.tree_map(id, 1)",
        "def f(x):\n    if x:\n        return x\n    return jax.tree_map(id, x)",
        "try:\n    pass\nfinally:\n    jax.tree_map(id, 1)",
        "jax.tree_map(id, 1)  # noqa: E501",
    ],
)
def test_code_without_a_guard_is_found(code):
    assert names(f"import jax\n{code}") == ["jax.tree_map"]


def test_deprecated_calls_and_removed_arguments():
    assert names("import jax\njax.host_id() == jax.host_count()", severity="warns") == ["jax.host_count", "jax.host_id"]
    assert names("import jax\njax.remat(abs, concrete=True)", "0.7.2") == ["jax.remat(concrete=)"]  # raises an error
    assert names("import jax\njax.core.gensym([])", "0.10") == ["jax.core.gensym()"]
    config = "import jax\njax.config.update('jax_enable_x64', True)\njax.config.jax_enable_x64\njax.config.read('x')\n"
    assert find(config) == []


def test_a_missing_import():
    code = "import jax{}\njax.flatten_util.ravel_pytree(1)\njax.flatten_util.ravel_pytree(2)\n"
    assert [(finding.line, finding.severity) for finding in find(code.format(""))] == [(2, "gone")]
    assert [finding.severity for finding in find(code.format(", flax"))] == ["could be better"]  # flax may import it
    for brought in (
        ", jax.flatten_util",
        "\nfrom jax.flatten_util import ravel_pytree",
        "\nfrom jax import flatten_util",
    ):
        assert find(code.format(brought)) == []


def test_private_names_are_reported(written, command):
    code = "import jax\nfrom jax._src import core\nfrom jax.core import _x\ncore.y\njax._src.util.safe_zip\njax.numpy._z(1)\n"
    assert [(finding.line, finding.name) for finding in find(code + "jax.__version__") if finding.severity == "private"] == [
        (2, "jax._src.core"), (3, "jax.core._x"), (5, "jax._src.util.safe_zip"), (6, "jax.numpy._z"),
    ]  # fmt: skip
    result = command(written("a.py", code))
    assert result.returncode == 0 and result.stdout.endswith(": 4 private\n") and "it is private" in result.stdout


def test_guarded_lines_are_counted(written):
    code = "import jax\ntry:\n    from jax.experimental import stax\nexcept ImportError:\n    pass\n"
    code += (
        "def f():\n    if jax.__version_info__ < (0, 4):\n        x = 1\n        return jax.tree_map(\n            x)\n"
    )
    assert find(code) == []
    _, [note] = examine(written("a.py", code))
    assert "a.py: 4 lines not checked, starting at line 3: " in note
    types = "import jax\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from jax.random import KeyArray"
    assert examine(written("b.py", types)) == ([], [])


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("from jax import pmap\ny = jax.tree_map(f, x)", ["jax.tree_map"]),
        ("@partial(xmap, in_axes=0)\ndef f(x): ...", ["jax.experimental.maps"]),
        ("x = jax.tree_map(f, a)\ny = jnp.product(a)", ["jax.tree_map", "jax.numpy.product"]),
        ("g = shard_map(f, check_rep=False)", ["jax.shard_map(check_rep=)"]),
        ("from mine import xmap\nxmap(f)", []),
        ("from mine import *\nxmap(f)", []),
        ("def f(jnp):\n    return jnp.product(a)", []),
        ("try:\n    from jax.experimental.maps import xmap\nexcept ImportError:\n    xmap = None\nxmap(f)", []),
    ],
)
def test_a_fragment_without_imports_is_read_with_the_usual_names(code, expected):
    assert [one.name for one in find(code)] == expected


def test_severities_and_targets():
    code = "import jax\njax.lax.pvary(1, 'i')\njax.device_put_sharded([], [])\njax.tree_map(id, 1)\n"
    by_version = {
        version: [(finding.name.split(".")[-1], finding.severity) for finding in find(code, target=version)]
        for version in ("0.7", "0.9", "0.10")
    }
    assert by_version["0.7"] == [("tree_map", "gone")]
    assert by_version["0.9"] == [("pvary", "warns"), ("device_put_sharded", "warns"), ("tree_map", "gone")]
    assert by_version["0.10"] == [("pvary", "gone"), ("device_put_sharded", "gone"), ("tree_map", "gone")]
    assert names("import jax\njax.set_mesh(1)\njax.reshard(1, 2)", "0.7.2") == ["jax.reshard"]  # added in 0.8.2
    mesh = "import jax\nmesh = jax.make_mesh((8,), ('i',))\n"
    assert [finding.row for finding in find(mesh, target="0.12")] == [16]
    assert find(mesh, target="0.7") == []
    lazy = "from __future__ import annotations\nimport jax\ndef f(k: jax.random.KeyArray): ..."
    assert [finding.severity for finding in find(lazy)] == ["could be better"]


def test_a_mesh_without_axis_types_that_a_program_sets():
    """Test a program that ran on JAX 0.8.1, with automatic axes, but raises ShardingTypeError on 0.9 and later."""
    code = """\
import jax, numpy as np
from jax.sharding import PartitionSpec as P
mesh = jax.make_mesh((4, 2), ("x", "y"))
jax.set_mesh(mesh)
x = jax.device_put(np.ones((8, 8)), P("x", "y"))
w = jax.device_put(np.ones((8, 8)), P("y", None))
print(x @ w)
"""
    assert [(api.line, api.row, api.severity) for api in find(code)] == [(3, 16, "means something else")]
    assert find(code, target="0.8") == []


def test_a_constraint_on_an_explicit_mesh():
    head = (
        "import jax\nfrom jax.sharding import *\nfrom jax.sharding import NamedSharding, PartitionSpec as P, AxisType\n"
    )
    head += "mesh = jax.make_mesh((8,), ('i',), axis_types=(AxisType.{},))\n"
    body = "f = jax.jit(lambda v: jax.lax.with_sharding_constraint(v, NamedSharding(mesh, P({}))))\n"
    assert [(finding.row, finding.severity) for finding in find((head + body).format("Explicit", ""))] == [
        (23, "means something else")
    ]
    assert [(finding.row, finding.severity) for finding in find((head + body).format("Explicit", "'i'"))] == [
        (23, "gone")
    ]
    assert find((head + body).format("Auto", "")) == []


@pytest.mark.parametrize(
    "code",
    [
        "step = lambda v: v\nstep = jax.pmap(step)",
        "device = jax.devices('gpu')[0]",
        "mesh = jax.make_mesh((8,), ('i',))\nf = jax.shard_map(abs, mesh=mesh, in_specs=P('i'), out_specs=P('i'))\n"
        "f(jax.device_put(1, NamedSharding(mesh, P('i'))))\nf(jax.numpy.ones(8))\njax.typeof(1)",
        "import jax\nmesh = jax.make_mesh((8,), ('i',))\nx = jax.reshard(1, 2)",
    ],
)
def test_rows_16_to_19_have_no_false_positives(code):
    assert find(f"import jax\nfrom jax.sharding import NamedSharding, PartitionSpec as P\n{code}") == []


def test_every_way_to_enter_a_mesh():
    head = "import jax\nimport contextlib\nfrom jax.sharding import Mesh\nm = Mesh(jax.devices(), 'i')\n"
    for body in ("with m:\n    pass", "with Mesh(jax.devices(), 'i'):\n    pass", "with Mesh(jax.devices(), 'i') as n:\n    pass",
                 "s = contextlib.ExitStack()\ns.enter_context(m)"):  # fmt: skip
        assert [finding.row for finding in find(head + body)] == [12], body


def cells(*sources: str) -> str:
    return json.dumps({"cells": [{"cell_type": "code", "source": source} for source in sources], "nbformat": 4})


@pytest.mark.parametrize(
    ("name", "text", "places"),
    [
        ("a.ipynb", cells("import jax\n%time jax.tree_map(id, 1)"), ["cell 1, line 2"]),
        ("a.ipynb", cells("import jax", "%%writefile x.py\nimport jax\njax.tree_map"), ["cell 2, line 3"]),
        ("a.ipynb", cells("%%writefile x.txt\njax.tree_map", "!pip install \\\n  jax\nimport jax\njax.tree_map"), ["cell 2, line 4"]),
        ("a.ipynb", cells("#@title Setup\n%%bash\nif [ ! -d x ]; then", "import jax\nx = (5\n  % jax.tree_map)"), ["cell 2, line 3"]),
        ("a.ipynb", cells("  import jax\n  jax.tree_map"), ["cell 1, line 2"]),
        ("a.ipynb", cells("import jax\nif 1:\n    !ls\n    jax.tree_map", "%time !ls", "jax.tree_map??"), ["cell 1, line 4"]),
        ("a.ipynb", cells("import jax\ns = '''\n!ls\n'''\nfiles = !ls\njax.tree_map"), ["cell 1, line 6"]),
        ("a.ipynb", json.dumps({"worksheets": [{"cells": [{"cell_type": "code", "input": ["import jax\n", "jax.tree_map"]}]}]}), ["cell 1, line 2"]),
        ("a.py", "\ufeffimport jax\njax.tree_map", ["line 2"]),
        ("a.py", "# \xe9\nimport jax\njax.tree_map".encode("latin-1"), ["line 3"]),
        ("a.py", "# -*- coding: latin-1 -*-\n# \xe9\nimport jax\njax.tree_map".encode("latin-1"), ["line 4"]),
        ("a.py", "import jax\r\njax.tree_map\r\n", ["line 2"]),
        ("a.md", "# Page\n\n```python\nimport jax\njax.tree_map\n```\n\n```bash\njax.tree_map\n```\n", ["line 5"]),
        ("a.md", "Text\n\n>>> import jax\n>>> for i in range(3):\n...     jax.tree_map(id, i)\n1\n", ["line 5"]),
        ("a.md", "```{code-cell} ipython3\n:tags: [a]\n\nimport jax\n%time jax.tree_map\n```", ["line 5"]),
        ("a.md", "```pycon\n>>> import jax\n>>> jax.tree_map\n<function>\n```", ["line 3"]),
        ("a.rst", "A\n\n.. code-block:: python\n\n    import jax\n    jax.tree_map\n\nB\n", ["line 6"]),
    ],
)  # fmt: skip
def test_python_is_read_from_every_kind_of_file(written, name, text, places):
    assert [place for place, *_ in report(written(name, text))] == places


@pytest.mark.parametrize("text", ["{", "[]", '{"cells": 3}', "", '{"nbformat": 4}'])
def test_a_broken_notebook_becomes_a_note(written, command, text):
    path = written("bad.ipynb", text)
    good = written("good.py", "import jax\njax.tree_map\n")
    result = command(path, good)
    assert result.returncode == 1 and "good.py" in result.stdout
    assert result.stderr.startswith(f"note: {path}: not a notebook") and "Traceback" not in result.stderr


def test_installed_packages_in_a_folder_are_skipped(written, tmp_path):
    for name in ("a.py", ".hidden/b.py", "venv/c.py", "mine/pyvenv.cfg", "mine/d.py", "deep/er/e.md", "f.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("import jax\n")
    assert [path.name for path in files(tmp_path)] == ["a.py", "e.md"]


def test_time_grows_almost_linearly():
    function = (
        "@jax.jit\ndef f{0}(x):\n    y = jax.lax.psum(x, 'i')\n    return jax.device_put(y, d)\ng{0} = jax.jit(f{0})\n"
    )

    def seconds(count):
        code = "import jax\nd = jax.devices()[0]\n" + "".join(function.format(i) for i in range(count))
        times = []
        for _ in range(2):  # use the minimum, because other programs may slow down one of the runs
            start = time.process_time()
            assert len(find(code)) == 2 * count
            times.append(time.process_time() - start)
        return min(times)

    assert seconds(800) < 10 * seconds(200)  # the ratio is about 6; quadratic growth would make it 16


def test_the_releases_in_the_rows_agree_with_the_record():
    for row in ROWS.values():
        for form in row.old_apis:
            if form.name:
                first, last = NEWEST.span(form.name)
                assert first and parse_version(first) <= parse_version(
                    form.warns if form.warns and form.warns[0] == "0" else last
                )
                if form.gone and form.gone[0] == "0" and last != NEWEST.version:
                    assert parse_version(last) < parse_version(form.gone), form.text


def notebook(tmp_path, *sources):
    path = tmp_path / "mine.ipynb"
    cells = [{"cell_type": "markdown", "source": "jax.tree_map"}]
    cells += [{"cell_type": "code", "source": source.splitlines(keepends=True)} for source in sources]
    path.write_text(json.dumps({"cells": cells}))
    return path


def test_code_that_does_not_parse_becomes_a_note(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("import jax\nx = (1,\n")
    with pytest.raises(Unreadable, match=r"mine\.py, line 2: not Python: "):
        report(path)
    with pytest.raises(NotPython, match=r"source, line 2: not Python: "):
        find("import jax\nx = (1,\n")
    path = notebook(tmp_path, "import jax", "%matplotlib inline\nx = 1\nx = = 2", "jax.tree_map(id, 1)")
    rows, notes = examine(path)
    assert [place for place, *_ in rows] == ["cell 3, line 1"]
    assert [note.split("mine.ipynb, ")[1] for note in notes] == ["cell 2, line 3: not Python: invalid syntax"]


def test_releases_are_compared_as_numbers():
    form = OldApi("f", warns="0.8.2", gone="0.10.0")
    assert [form.status(v) for v in ("0.7.2", "0.8.2", "0.9.10", "0.10.0", "0.12.0.1")] == [
        "works", "warns", "warns", "gone", "gone",
    ]  # fmt: skip
