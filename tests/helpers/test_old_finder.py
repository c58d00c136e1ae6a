"""The finder on what people write: names by any way, guards, places to read Python from, the changes of --fix."""

from __future__ import annotations

import json
import os
import pkgutil
import re
import subprocess
import sys
import time
import tomllib

import pytest

from old_jax.command import main
from old_jax.find import examine, find, report
from old_jax.fix import fix
from old_jax.forms import PHRASES, ROWS
from old_jax.mend import fixed_file, unified_diff, write_files
from old_jax.message import find_answer
from old_jax.moved import MOVED, PLAIN
from old_jax.read import Unreadable, files
from old_jax.record import Record, numbers
from old_jax.same import SAME
from tools.lessons import notebooks
from tools.maintenance import jax_names

pytestmark = pytest.mark.once

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
def test_it_finds_by_any_way(code, name):
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
        "if jax.__version__ >= '0.4.26':\n    pass\nelse:\n    jax.tree_map(id, 1)",  # as texts, '0.12' comes before
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
def test_what_is_no_guard_is_found(code):
    assert names(f"import jax\n{code}") == ["jax.tree_map"]


def test_what_else_gives_way():
    assert names("import jax\njax.host_id() == jax.host_count()", severity="warns") == ["jax.host_count", "jax.host_id"]
    assert names("import jax\njax.remat(abs, concrete=True)", "0.7.2") == ["jax.remat(concrete=)"]  # and not "warns"
    assert names("import jax\njax.core.gensym([])", "0.10") == ["jax.core.gensym()"]
    config = "import jax\njax.config.update('jax_enable_x64', True)\njax.config.jax_enable_x64\njax.config.read('x')\n"
    assert find(config) == []


def test_an_import_that_is_forgotten():
    code = "import jax{}\njax.flatten_util.ravel_pytree(1)\njax.flatten_util.ravel_pytree(2)\n"
    assert [(one.line, one.severity) for one in find(code.format(""))] == [(2, "gone")]
    assert [one.severity for one in find(code.format(", flax"))] == ["could be better"]  # flax may bring it
    for brought in (
        ", jax.flatten_util",
        "\nfrom jax.flatten_util import ravel_pytree",
        "\nfrom jax import flatten_util",
    ):
        assert find(code.format(brought)) == []


def test_private_names_are_told(written):
    code = "import jax\nfrom jax._src import core\nfrom jax.core import _x\ncore.y\njax._src.util.safe_zip\njax.numpy._z(1)\n"
    assert [(one.line, one.name) for one in find(code + "jax.__version__") if one.severity == "private"] == [
        (2, "jax._src.core"), (3, "jax.core._x"), (5, "jax._src.util.safe_zip"), (6, "jax.numpy._z"),
    ]  # fmt: skip
    told = command(written("a.py", code))
    assert told.returncode == 0 and told.stdout.endswith(": 4 private\n") and "no promise" in told.stdout


def test_lines_that_are_silenced_are_counted(written):
    code = "import jax\ntry:\n    from jax.experimental import stax\nexcept ImportError:\n    pass\n"
    code += (
        "def f():\n    if jax.__version_info__ < (0, 4):\n        x = 1\n        return jax.tree_map(\n            x)\n"
    )
    assert find(code) == []
    _, [note] = examine(written("a.py", code))
    assert "a.py: 4 lines not looked at, the first is line 3: " in note
    types = "import jax\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from jax.random import KeyArray"
    assert examine(written("b.py", types)) == ([], [])


def test_severities_and_targets():
    code = "import jax\njax.lax.pvary(1, 'i')\njax.device_put_sharded([], [])\njax.tree_map(id, 1)\n"
    by = {
        version: [(one.name.split(".")[-1], one.severity) for one in find(code, target=version)]
        for version in ("0.7", "0.9", "0.10")
    }
    assert by["0.7"] == [("tree_map", "gone")]
    assert by["0.9"] == [("pvary", "warns"), ("device_put_sharded", "warns"), ("tree_map", "gone")]
    assert by["0.10"] == [("pvary", "gone"), ("device_put_sharded", "gone"), ("tree_map", "gone")]
    assert names("import jax\njax.set_mesh(1)\njax.reshard(1, 2)", "0.7.2") == ["jax.reshard"]  # it comes in 0.8.2
    mesh = "import jax\nmesh = jax.make_mesh((8,), ('i',))\n"
    assert [one.row for one in find(mesh, target="0.12")] == [16]
    assert find(mesh, target="0.7") == []
    lazy = "from __future__ import annotations\nimport jax\ndef f(k: jax.random.KeyArray): ..."
    assert [one.severity for one in find(lazy)] == ["could be better"]


def test_a_constraint_on_an_explicit_mesh():
    head = (
        "import jax\nfrom jax.sharding import *\nfrom jax.sharding import NamedSharding, PartitionSpec as P, AxisType\n"
    )
    head += "mesh = jax.make_mesh((8,), ('i',), axis_types=(AxisType.{},))\n"
    body = "f = jax.jit(lambda v: jax.lax.with_sharding_constraint(v, NamedSharding(mesh, P({}))))\n"
    assert [(one.row, one.severity) for one in find((head + body).format("Explicit", ""))] == [
        (23, "means something else")
    ]
    assert [(one.row, one.severity) for one in find((head + body).format("Explicit", "'i'"))] == [(23, "gone")]
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
def test_rows_16_to_19_do_not_say_too_much(code):
    assert find(f"import jax\nfrom jax.sharding import NamedSharding, PartitionSpec as P\n{code}") == []


def test_every_way_to_hold_a_mesh():
    head = "import jax\nimport contextlib\nfrom jax.sharding import Mesh\nm = Mesh(jax.devices(), 'i')\n"
    for body in ("with m:\n    pass", "with Mesh(jax.devices(), 'i'):\n    pass", "with Mesh(jax.devices(), 'i') as n:\n    pass",
                 "s = contextlib.ExitStack()\ns.enter_context(m)"):  # fmt: skip
        assert [one.row for one in find(head + body)] == [12], body


@pytest.fixture
def written(tmp_path):
    def write(name: str, text: str | bytes):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


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
def test_it_reads_what_people_write_in(written, name, text, places):
    assert [place for place, *_ in report(written(name, text))] == places


@pytest.mark.parametrize("text", ["{", "[]", '{"cells": 3}', "", '{"nbformat": 4}'])
def test_a_broken_notebook_is_a_note(written, text):
    path = written("bad.ipynb", text)
    good = written("good.py", "import jax\njax.tree_map\n")
    told = command(path, good)
    assert told.returncode == 1 and "good.py" in told.stdout
    assert told.stderr.startswith(f"note: {path}: not a notebook") and "Traceback" not in told.stderr


def command(*arguments, options: tuple[str, ...] = ()):
    asked = [sys.executable, *options, "-m", "old_jax", *map(str, arguments)]
    return subprocess.run(asked, cwd=notebooks.ROOT, capture_output=True, text=True)


def test_a_folder_is_searched_without_what_is_installed(written, tmp_path):
    for name in ("a.py", ".hidden/b.py", "venv/c.py", "mine/pyvenv.cfg", "mine/d.py", "deep/er/e.md", "f.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("import jax\n")
    assert [path.name for path in files(tmp_path)] == ["a.py", "e.md"]


def test_it_needs_nothing_but_python(written):
    """-S: without anything that is installed."""
    told = command(written("old.py", "import jax\njax.tree_map\n"), options=("-S",))
    assert "jax.tree_map -> jax.tree.map (row 7)" in told.stdout and told.stderr == ""


def test_time_grows_little_faster_than_a_file():
    one = (
        "@jax.jit\ndef f{0}(x):\n    y = jax.lax.psum(x, 'i')\n    return jax.device_put(y, d)\ng{0} = jax.jit(f{0})\n"
    )

    def seconds(count):
        code = "import jax\nd = jax.devices()[0]\n" + "".join(one.format(i) for i in range(count))
        times = []
        for _ in range(2):  # the least: other programs may be at work, too
            start = time.process_time()
            assert len(find(code)) == 2 * count
            times.append(time.process_time() - start)
        return min(times)

    assert seconds(800) < 10 * seconds(200)  # six times; a quadratic one would take 16


OLD = '''"""Doc."""
import jax  # the library
from jax.config import config  # old
from jax.experimental import stax, optimizers
from jax.experimental.maps import Mesh, xmap
from jax.experimental.shard_map import shard_map
from jax import tree_map, tree_leaves as leaves_of

mesh = Mesh(jax.devices(), ("i",))
y = jax.tree_map(  # keep me
    lambda \u00e9: \u00e9 + 1, {"\u00fc": jax.tree_leaves(3)})
z = jax.ops.index_update(y + 1, jax.ops.index[0, :],  3)
o = jax.numpy.ones(3)
z = jax.ops.index_add(o, 0, jax.ops.index_update(o, 1, 2))
with mesh:
    s = shard_map(abs, mesh, P("i"), P("i"), check_rep=False)
m = jax.make_mesh(axis_shapes=(8,), axis_names=("i",))
key: jax.random.KeyArray
many = jax.device_put_sharded([], [])
'''
NEW = '''"""Doc."""
import jax  # the library
from jax import config  # old
from jax.example_libraries import stax, optimizers
from jax.experimental.maps import xmap
from jax.sharding import Mesh
from jax import shard_map
from jax.tree import map as tree_map, leaves as leaves_of

mesh = Mesh(jax.devices(), ("i",))
y = jax.tree.map(  # keep me
    lambda \u00e9: \u00e9 + 1, {"\u00fc": jax.tree.leaves(3)})
z = jax.numpy.asarray(y + 1).at[0, :].set(3)
o = jax.numpy.ones(3)
z = o.at[0].add(o.at[1].set(2))
with mesh:
    s = shard_map(abs, mesh=mesh, in_specs=P("i"), out_specs=P("i"), check_vma=False)
m = jax.make_mesh((8,), ("i",))
key: jax.Array
many = jax.device_put_sharded([], [])
'''


def test_fix_changes_the_old_words_and_nothing_else():
    assert fix(OLD) == NEW
    assert fix(NEW) == NEW


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("from jax import lax\nfrom jax.tree_util import tree_multimap\ntree_multimap(1)",
         "from jax import lax\nfrom jax.tree import map as tree_multimap\ntree_multimap(1)"),
        ("from jax import tree_util\ntree_util.tree_multimap(1)",
         "from jax import tree_util\nimport jax\njax.tree.map(1)"),
        ("import jax.numpy as jnp\njnp.product(1)", "import jax.numpy as jnp\njnp.prod(1)"),
        ("from jax.experimental.pjit import pjit\nf = pjit(f, in_axis_resources=P(None))",
         "from jax.experimental.pjit import pjit\nf = pjit(f, in_shardings=P(None))"),
        ("from jax import partial\npartial(max, 1)", "from functools import partial\npartial(max, 1)"),
        ("import jax\njax.partial(max, 1)", "import jax\nimport functools\nfunctools.partial(max, 1)"),
        ("from jax.random import KeyArray\ndef f(key: KeyArray | None) -> KeyArray: ...",
         "from jax import Array as KeyArray\ndef f(key: KeyArray | None) -> KeyArray: ..."),
        ("import numpy as np\nimport jax\nx = jax.ops.index_update(np.ones(3), jax.ops.index[1:], 2)",
         "import numpy as np\nimport jax\nx = jax.numpy.asarray(np.ones(3)).at[1:].set(2)"),
        ("import jax\njax.linear_util.wrap_init", "import jax\nimport jax.extend.linear_util\njax.extend.linear_util.wrap_init"),
        ("import jax.experimental.optimizers as o", "import jax.example_libraries.optimizers as o"),
        ("def f():\n    from jax import tree_map; return tree_map",
         "def f():\n    from jax.tree import map as tree_map; return tree_map"),
    ],
)  # fmt: skip
def test_fix_writes_the_new_form(old, new):
    assert fix(old) == new


@pytest.mark.parametrize(
    "code",
    [
        "f = jax.jit(f, in_axis_resources=1)",  # what pjit took
        "from jax.experimental.pjit import pjit\nf = pjit(f, in_axis_resources=(P(None), None))",
        "from jax.experimental.pjit import pjit\nf = pjit(f, 1, 2)",  # `with mesh:` is nothing to jit, None not whole
        "from jax.experimental import maps\nmaps.xmap",
        "if hasattr(jax, 'tree_map'):\n    jax.tree_map",
        "from jax.experimental.maps import (  # two\n    Mesh,\n    xmap,\n)",
        "def f(mesh):\n    with mesh:\n        pass",
        "m = jax.sharding.Mesh(jax.devices(), 'i')\nwith m:\n    jax.interpreters.pxla.thread_resources.env.physical_mesh",
        "jax.scipy.special.sph_harm(m, n, theta, phi)",  # the new one takes n, m
        "jax.random.rbg_key(0)",
        "isinstance(x, jax.random.KeyArray)",
        "from jax.random import KeyArray\nisinstance(x, KeyArray)\ndef f(k: KeyArray): ...",
        "from jax.random import KeyArray",  # for others to import from here
        "Key = jax.random.KeyArray",
        "type(x) == jax.numpy.DeviceArray",
        "from jax.interpreters.pxla import ShardedDeviceArray\nShardedDeviceArray(aval, buffers)",
        "jax.interpreters.pxla.ShardedDeviceArray(aval, buffers)",
        "from jax.interpreters import pxla\npxla.Chunked([2])",
        "from jax.interpreters import xla\nxla.abstractify(x)",
        "f is jax.tree_map",
        "from jax import tree_map\nf == tree_map",
        "jax.numpy.issubsctype(x, float)",  # issubdtype takes no array
        "from jax.experimental import stax\nstax.nothing_of_this",
        "from jax.experimental.shard_map import shard_map\nf = shard_map(g, mesh, auto=a)",
        "from jax.experimental.shard_map import shard_map\nf = wrap(shard_map)(g, mesh)",
        "from jax.experimental.shard_map import shard_map\nf = shard_map(g, *specs, check_rep=False)",
        "jax.numpy.clip(x, a_min=1, min=2)",
        "jax.sharding.use_mesh(mesh)",
    ],
)
def test_fix_leaves_what_is_not_proved(code):
    code = f"import jax\n{code}\n"
    assert fix(code) == code


def test_each_name_that_fix_writes_is_in_the_rows_and_in_the_record():
    """By the record: the JAX on which old and new were compared has both, and none before it that can be run."""
    for old, same in SAME.items():
        assert MOVED[old][0] == same.new, old
        assert not same.new.startswith("jax.") or NEWEST.fate(same.new).state == "works"
        names = (old, same.via or same.new)
        if same.via:
            assert SAME[same.via].new == same.new, old
        spans = [NEWEST.span(name) for name in names if name.startswith("jax.")]
        assert all(numbers(first) <= numbers(same.on) for first, _ in spans), old
        if numbers(same.on) > numbers("0.4.13"):  # of what can be installed, the first that has both
            assert max((first for first, _ in spans), key=numbers) == same.on, old
        assert same.source == (numbers(same.on) < numbers("0.4.13")), old


def test_the_command_shows_a_diff_and_writes_on_request(written):
    path = written("old.py", OLD)
    told = command("--fix", path)
    assert path.read_text() == OLD and "-from jax.config import config  # old\n" in told.stdout
    assert "left: " in told.stderr and "jax.device_put_sharded -> " in told.stderr
    command("--fix", "--write", path)
    assert path.read_text() == NEW
    assert unified_diff(path, NEW) == ""


@pytest.mark.parametrize("old", [old for old, (new, _) in MOVED.items() if PLAIN.match(new)])
def test_every_rewrite_ends(old):
    """`jax.partial(max, 1)` of objax never did: what takes its place is no module of JAX's."""
    module, _, leaf = old.rpartition(".")
    for code in (f"import jax\n{old}(max, 1)\n", f"from {module} import {leaf}\n{leaf}(max, 1)\n"):
        assert fix(fix(code)) == fix(code)


def test_a_folder_is_written_whole_or_not_at_all(tmp_path, monkeypatch, capsys):
    old = {name: f"import jax\n{name} = jax.tree_leaves(1)\n" for name in "abc"}
    for name, text in old.items():
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "a.py").chmod(0o750)
    replace = os.replace

    def full(name, place):  # the disk, at the third file
        if place.name == "c.py":
            raise OSError(28, "No space left on device")
        replace(name, place)

    monkeypatch.setattr(os, "replace", full)
    assert main(["--fix", "--write", str(tmp_path)]) == 2
    assert "no file was changed" in capsys.readouterr().err
    broken = {tmp_path / "a.py": old["a"].replace("leaves", "all"), tmp_path / "b.py": "b = ("}
    with pytest.raises(Unreadable):
        write_files(broken)
    assert {path.stem: path.read_text() for path in tmp_path.iterdir()} == old
    monkeypatch.setattr(os, "replace", replace)
    assert main(["--fix", "--write", str(tmp_path)]) == 1
    assert [path.read_text() for path in sorted(tmp_path.iterdir())] == [
        text.replace("tree_leaves", "tree.leaves") for text in old.values()
    ]
    assert (tmp_path / "a.py").stat().st_mode & 0o777 == 0o750


def test_fix_changes_the_cells_of_a_notebook_and_nothing_else(written):
    whole = {"cells": [{"cell_type": "code", "metadata": {}, "source": ["import jax\n", "jax.tree_map(\u00e9, 1)"]},
                       {"cell_type": "markdown", "source": ["jax.tree_map"]},
                       {"cell_type": "code", "source": ["%time jax.tree_map"]},
                       {"cell_type": "code", "source": "jax.tree_leaves(1)"}], "nbformat": 4}  # fmt: skip
    for indent in (None, 1):
        text = json.dumps(whole, indent=indent, ensure_ascii=False)
        new, _ = fixed_file(written("a.ipynb", text))
        assert new == text.replace("jax.tree_map(\u00e9", "jax.tree.map(\u00e9").replace(
            "tree_leaves(1)", "tree.leaves(1)"
        )


@pytest.mark.parametrize(
    ("old", "new"), [(old, new) for old, (new, _) in MOVED.items() if PLAIN.match(new) and new.startswith("jax")]
)
def test_a_name_that_is_put_in_the_place_of_another_is_there(old, new):
    """On every JAX that one may ask for, from the one on that has it; and it is no old form itself."""
    assert NEWEST.fate(new).state == "works"
    assert NEWEST.had_module(old) or old == "jax.config.config" or NEWEST.fate(old).state != "works"


MESSAGES = (  # the site's page is held against them, too
    ("AttributeError: module 'jax' has no attribute 'tree_map'", "jax.tree_map", 7),
    ("ImportError: cannot import name 'Primitive' from 'jax.core' (/x/y.py)", "jax.core.Primitive", 24),
    ("ModuleNotFoundError: No module named 'jax.config'", "jax.config", 24),
    ("ModuleNotFoundError: No module named 'jax.experimental.maps'", "jax.experimental.maps", 2),
    ("TypeError: shard_map() got an unexpected keyword argument 'check_rep'", "jax.shard_map(check_rep=)", 11),
    ("TypeError: clip() got an unexpected keyword argument 'a_min'", "jax.numpy.clip(a_min=)", 24),
    ("AttributeError: jax.device_put_replicated is deprecated; use jax.device_put instead.", "jax.device_put_replicated", 5),
    ("ValueError: 0th dimension of all xs should be replicated. Got P('i', None)", "make_mesh without axis_types", 16),
    ("TypeError: unexpected keyword argument 'out_axis_resources'", "jax.jit(out_axis_resources=)", 10),
    ("AttributeError: 'Compiled' object has no attribute 'compiler_ir'", "compiled.compiler_ir()", 24),
    ("AttributeError: 'jaxlib._jax.NamedSharding' object has no attribute 'replicate'", "PositionalSharding.replicate(axis)", 3),
    ("AttributeError: Unrecognized config option: jax_array", "jax.config.update", 24),
    ("ShardingTypeError: dot_general requires contracting dimensions to have consistent sharding, got ('i',) and ('j',).", "make_mesh without axis_types", 16),
    ("ShardingTypeError: add got incompatible shardings for broadcasting: ('i', 'j'), ('j', 'i').", "make_mesh without axis_types", 16),
    ("TypeError: AbstractMesh.__new__() missing 1 required positional argument: 'axis_names'", "AbstractMesh of pairs", 24),
)  # fmt: skip
OTHER_MESSAGES = (
    "KeyError: 'x'",
    "AttributeError: module 'numpy' has no attribute 'float'",
    "No module named 'flax'",
    "",
)


@pytest.mark.parametrize(("message", "name", "row"), MESSAGES)
def test_a_message_leads_to_its_row(message, name, row):
    found = find_answer(message)
    assert (found.name, found.row) == (name, row)


def test_other_messages_lead_nowhere():
    for message in OTHER_MESSAGES:
        assert find_answer(message) is None


def test_run_puts_the_row_under_the_traceback(written):
    script = written(
        "s.py",
        "import sys\ndef f():\n    raise AttributeError(\"module 'jax' has no attribute 'tree_map'\")\nprint(sys.argv[1:])\nf()\n",
    )
    told = command("--run", script, "--steps", "3")
    assert told.stdout == "['--steps', '3']\n" and told.returncode == 1
    lines = told.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):" and str(script) in lines[1]
    assert lines[-1] == "Old code: jax.tree_map -> jax.tree.map (row 7 of appendix 90)"


def test_the_extension_explains_a_failed_cell():
    told = subprocess.run(
        [sys.executable, "-c", "from IPython.core.interactiveshell import InteractiveShell as S\ns = S.instance()\n"
         "s.run_line_magic('load_ext', 'old_jax')\ns.run_cell('1 / 1')\n"
         "s.run_cell('raise ImportError(\"No module named \\'jax.experimental.maps\\'\")')"],
        cwd=notebooks.ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert (
        told.stderr.count(
            "Old code: jax.experimental.maps -> jax.shard_map; Mesh is in jax.sharding (row 2 of appendix 90)"
        )
        == 1
    ), told.stderr


def test_what_is_installed_elsewhere_is_whole():
    """uvx, pipx and pre-commit get the packages that pyproject.toml names, and nothing of the course besides."""
    whole = tomllib.loads((notebooks.ROOT / "pyproject.toml").read_text())
    [(name, target)] = whole["project"]["scripts"].items()
    assert whole["tool"]["setuptools"]["packages"] == ["old_jax"]
    assert "dependencies" not in whole["project"] and callable(pkgutil.resolve_name(target))
    for path in (notebooks.ROOT / "old_jax").glob("*.py"):
        for module in re.findall(r"^\s*(?:from|import) ([\w.]+)", path.read_text(encoding="utf-8"), re.M):
            assert module.split(".")[0] in sys.stdlib_module_names or module.startswith("old_jax"), (
                path.name,
                module,
            )
    assert f"entry: {name}\n" in (notebooks.ROOT / ".pre-commit-hooks.yaml").read_text()


def test_when_a_form_came_and_went_is_what_the_record_has():
    for row in ROWS.values():
        for form in row.forms:
            if form.name:
                first, last = NEWEST.span(form.name)
                assert first and numbers(first) <= numbers(form.warns if form.warns and form.warns[0] == "0" else last)
                if form.gone and form.gone[0] == "0" and last != NEWEST.version:
                    assert numbers(last) < numbers(form.gone), form.text


def test_the_page_s_index_has_the_finder_s_words():
    [index] = [
        c for c in notebooks.read(notebooks.ROOT / "notebooks" / "90_old_code_new_jax.ipynb").cells if c.id == "index"
    ]
    for row, phrases in PHRASES.items():
        for phrase in phrases:
            for part in phrase.split(" ... "):
                assert any(
                    part.split("`out_")[0].strip("`") in line
                    for line in index.source.splitlines()
                    if f"[{row}](#Row" in line
                ), part


def test_the_record_is_made_of_its_versions():
    """So that a new JAX is put in without those that were recorded before."""
    text = jax_names.RECORD.read_text(encoding="utf-8")
    assert jax_names.record_text(jax_names.merge(jax_names.apart(json.loads(text)))) == text
    assert len(text) < 310_000


def test_what_is_recorded_of_a_module(tmp_path):
    source = "import os\nfrom jax import lax\nfrom typing import Any\nfrom . import own\n_hidden = 1\nx, y = 1, 2\ntry:\n    def f(): ...\nexcept ImportError:\n    g = 1\nclass C: ...\n"
    path = tmp_path / "m.py"
    path.write_text(source)
    assert jax_names.read_names(path) == ["C", "f", "g", "lax", "own", "x", "y"]
    assert jax_names.signature(lambda a, /, b, *, c=1: 0) == "2 b c"
    assert jax_names.signature(lambda *a, b=1: 0) == "* b"
    assert jax_names.signature(lambda *a, **b: 0) is None and jax_names.signature(3) is None
    assert jax_names.spans([{"a", "b"}, {"a"}, {"b"}, {"a"}, {"a"}]) == {"0-1,3-4": "a", "0,2": "b"}
