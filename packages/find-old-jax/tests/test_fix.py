"""Test that `--fix` makes only the replacements that are known to be correct."""

from __future__ import annotations

import json
import os

import pytest
from find_old_jax.cli import main
from find_old_jax.fix import fix
from find_old_jax.fix_files import fixed_file, unified_diff, write_files
from find_old_jax.read import Unreadable
from find_old_jax.release_names import Record, parse_version
from find_old_jax.replacements import PLAIN, REPLACEMENTS
from find_old_jax.safe_renames import SAFE_RENAMES

NEWEST = Record()

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


def test_fix_changes_only_the_old_names():
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
        "f = jax.jit(f, in_axis_resources=1)",  # an argument of pjit, not of jit
        # pjit stays: jit ignores `with mesh:`, and treats None as unspecified, whereas pjit treated it as replicated
        "from jax.experimental.pjit import pjit\nf = pjit(f, in_axis_resources=(P(None), None))",
        "from jax.experimental.pjit import pjit\nf = pjit(f, 1, 2)",
        "from jax.experimental import maps\nmaps.xmap",
        "if hasattr(jax, 'tree_map'):\n    jax.tree_map",
        "from jax.experimental.maps import (  # two\n    Mesh,\n    xmap,\n)",
        "def f(mesh):\n    with mesh:\n        pass",
        "m = jax.sharding.Mesh(jax.devices(), 'i')\nwith m:\n    jax.interpreters.pxla.thread_resources.env.physical_mesh",
        "jax.scipy.special.sph_harm(m, n, theta, phi)",  # sph_harm_y takes n before m
        "jax.random.rbg_key(0)",
        "isinstance(x, jax.random.KeyArray)",
        "from jax.random import KeyArray\nisinstance(x, KeyArray)\ndef f(k: KeyArray): ...",
        "from jax.random import KeyArray",  # other modules may import it from here
        "Key = jax.random.KeyArray",
        "type(x) == jax.numpy.DeviceArray",
        "from jax.interpreters.pxla import ShardedDeviceArray\nShardedDeviceArray(aval, buffers)",
        "jax.interpreters.pxla.ShardedDeviceArray(aval, buffers)",
        "from jax.interpreters import pxla\npxla.Chunked([2])",
        "from jax.interpreters import xla\nxla.abstractify(x)",
        "f is jax.tree_map",
        "from jax import tree_map\nf == tree_map",
        "jax.numpy.issubsctype(x, float)",  # issubdtype doesn't accept an array
        "from jax.experimental import stax\nstax.nothing_of_this",
        "from jax.experimental.shard_map import shard_map\nf = shard_map(g, mesh, auto=a)",
        "from jax.experimental.shard_map import shard_map\nf = wrap(shard_map)(g, mesh)",
        "from jax.experimental.shard_map import shard_map\nf = shard_map(g, *specs, check_rep=False)",
        "jax.numpy.clip(x, a_min=1, min=2)",
        "jax.sharding.use_mesh(mesh)",
    ],
)
def test_fix_leaves_uncertain_replacements(code):
    code = f"import jax\n{code}\n"
    assert fix(code) == code


def test_each_name_that_fix_writes_is_in_the_rows_and_in_the_record():
    """Test that the table of safe renames agrees with the record.

    The record shows when each name was added. A pair compared on a version newer than 0.4.13, the oldest that can be
    installed, must have been compared on the first version that has both names.
    """
    for old, rename in SAFE_RENAMES.items():
        assert REPLACEMENTS[old][0] == rename.new, old
        assert not rename.new.startswith("jax.") or NEWEST.status(rename.new).state == "works"
        names = (old, rename.via or rename.new)
        if rename.via:
            assert SAFE_RENAMES[rename.via].new == rename.new, old
        spans = [NEWEST.span(name) for name in names if name.startswith("jax.")]
        assert all(parse_version(first) <= parse_version(rename.on) for first, _ in spans), old
        if parse_version(rename.on) > parse_version("0.4.13"):  # 0.4.13 is the oldest JAX that can be installed
            assert max((first for first, _ in spans), key=parse_version) == rename.on, old
        assert rename.source == (parse_version(rename.on) < parse_version("0.4.13")), old


def test_the_command_shows_a_diff_and_writes_on_request(written, command):
    path = written("old.py", OLD)
    result = command("--fix", path)
    assert path.read_text() == OLD and "-from jax.config import config  # old\n" in result.stdout
    assert "not fixed: " in result.stderr and "jax.device_put_sharded -> " in result.stderr
    command("--fix", "--write", path)
    assert path.read_text() == NEW
    assert unified_diff(path, NEW) == ""


@pytest.mark.parametrize("old", [old for old, (new, _) in REPLACEMENTS.items() if PLAIN.match(new)])
def test_a_second_fix_changes_nothing(old):
    """Test that a second fix changes nothing.

    `jax.partial` used to be replaced again and again, because its replacement isn't in JAX.
    """
    module, _, leaf = old.rpartition(".")
    for code in (f"import jax\n{old}(max, 1)\n", f"from {module} import {leaf}\n{leaf}(max, 1)\n"):
        assert fix(fix(code)) == fix(code)


def test_all_files_of_a_folder_are_written_or_none(tmp_path, monkeypatch, capsys):
    originals = {name: f"import jax\n{name} = jax.tree_leaves(1)\n" for name in "abc"}
    for name, text in originals.items():
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "a.py").chmod(0o750)
    replace = os.replace

    def replace_or_fail(name, target):  # simulate a full disk at the third file
        if target.name == "c.py":
            raise OSError(28, "No space left on device")
        replace(name, target)

    monkeypatch.setattr(os, "replace", replace_or_fail)
    assert main(["--fix", "--write", str(tmp_path)]) == 2
    assert "no file was changed" in capsys.readouterr().err
    broken = {tmp_path / "a.py": originals["a"].replace("leaves", "all"), tmp_path / "b.py": "b = ("}
    with pytest.raises(Unreadable):
        write_files(broken)
    assert {path.stem: path.read_text() for path in tmp_path.iterdir()} == originals
    monkeypatch.setattr(os, "replace", replace)
    assert main(["--fix", "--write", str(tmp_path)]) == 1
    assert [path.read_text() for path in sorted(tmp_path.iterdir())] == [
        text.replace("tree_leaves", "tree.leaves") for text in originals.values()
    ]
    assert (tmp_path / "a.py").stat().st_mode & 0o777 == 0o750


def test_fix_changes_only_the_cells_of_a_notebook(written):
    notebook = {"cells": [{"cell_type": "code", "metadata": {}, "source": ["import jax\n", "jax.tree_map(\u00e9, 1)"]},
                       {"cell_type": "markdown", "source": ["jax.tree_map"]},
                       {"cell_type": "code", "source": ["%time jax.tree_map"]},
                       {"cell_type": "code", "source": "jax.tree_leaves(1)"}], "nbformat": 4}  # fmt: skip
    for indent in (None, 1):
        text = json.dumps(notebook, indent=indent, ensure_ascii=False)
        new, _ = fixed_file(written("a.ipynb", text))
        assert new == text.replace("jax.tree_map(\u00e9", "jax.tree.map(\u00e9").replace(
            "tree_leaves(1)", "tree.leaves(1)"
        )


@pytest.mark.parametrize(
    ("old", "new"), [(old, new) for old, (new, _) in REPLACEMENTS.items() if PLAIN.match(new) and new.startswith("jax")]
)
def test_each_replacement_exists(old, new):
    """Test that the replacement works in the newest JAX, and that the old name doesn't, unless it's a module."""
    assert NEWEST.status(new).state == "works"
    assert NEWEST.is_module_in_any_version(old) or old == "jax.config.config" or NEWEST.status(old).state != "works"
