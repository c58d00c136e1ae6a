"""Test appendix 90: run each removed API on the installed JAX, find it in a file, and look up its error message."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from find_old_jax.error_lookup import find_answer
from find_old_jax.find import find, report
from find_old_jax.old_apis import ROWS
from find_old_jax.release_names import Record
from find_old_jax.replacements import NEEDS_IMPORT
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from tools.lessons import notebooks
from utils.compat import device_text
from utils.show.errors import show_outcome

PAGE = notebooks.read(notebooks.ROOT / "notebooks" / "90_old_code_new_jax.ipynb")
HEAD = """
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
"""
MESHES = """
mesh = Mesh(np.array(devices), ("i",))
typed = jax.make_mesh((8,), ("i",), axis_types=(AxisType.Explicit,), devices=devices)
"""
SPECS = 'in_specs=P("i"), out_specs=P("i")'
OLD = {  # maps the text of each form in ROWS to code that uses the form, as in articles
    "jnp.random.rand": "jnp.random.rand(3)",
    "xmap": "from jax.experimental.maps import xmap",
    "PositionalSharding": "from jax.sharding import PositionalSharding",
    "experimental.shard": "from jax.experimental.shard import reshard",
    "device_put_sharded": "jax.device_put_sharded(list(np.ones((8, 3))), devices)",
    "device_put_replicated": "jax.device_put_replicated(jnp.ones(3), devices)",
    "x.device()": "x.device()",
    "x.device_buffers": "x.device_buffers",
    "jax.tree_map": "jax.tree_map(lambda leaf: leaf, x)",
    "setup_tpu()": "import jax.tools.colab_tpu\njax.tools.colab_tpu.setup_tpu()",
    "jax.lib.xla_bridge": "import jax.lib\njax.lib.xla_bridge.get_backend()",
    "pjit": "from jax.experimental.pjit import pjit\npjit(lambda v: v)(x)",
    "experimental.shard_map": "from jax.experimental.shard_map import shard_map\n"
    f"shard_map(lambda v: v, mesh=mesh, {SPECS})(x)",
    "jax.shard_map(check_rep=)": f"jax.shard_map(lambda v: v, mesh=mesh, check_rep=False, {SPECS})(x)",
    "auto=": "from jax.experimental.shard_map import shard_map\n"
    f"shard_map(lambda v: v, mesh=mesh, auto=frozenset(), {SPECS})(x)",
    "use_mesh": "jax.sharding.use_mesh(mesh)",
    "with mesh:": "with mesh:\n    jax.jit(lambda v: jax.lax.with_sharding_constraint(v, P('i')))(x)",
    "axis_shapes=": "jax.make_mesh(axis_shapes=(8,), axis_names=('i',), axis_types=(AxisType.Auto,), devices=devices)",
    "pvary": f"jax.shard_map(lambda v: v + jax.lax.pvary(1.0, 'i'), mesh=mesh, {SPECS})(x)",
    "jit(f, backend=)": "jax.jit(lambda v: v, backend='cpu')(x)",
    "make_mesh without axis_types": "unsaid = jax.make_mesh((8,), ('i',), devices=devices)\n"
    "assert unsaid.axis_types == (AxisType.Auto,)",
    "in_specs that reshard": "whole = jax.device_put(x, NamedSharding(typed, P()))\n"
    f"jax.shard_map(lambda v: v, mesh=typed, {SPECS})(whole)",
    "pmap in pmap": "jax.pmap(jax.pmap(lambda v: v))(jnp.ones((2, 4, 3)))",
    "PmapSharding": "from jax.sharding import PmapSharding\nPmapSharding.default((8,))",
    "jax.devices('gpu') without a GPU": "device = jax.devices('gpu')[0] if jax.devices('gpu') else None",
    "psum over an unbound axis": "jax.jit(lambda v: jax.lax.psum(v, axis_name='batch'))(x)",
    "device_put in a jit": "many = jax.devices('cpu')\n"
    "assert jax.jit(lambda v: jax.device_put(v, many[3]))(x).devices() == {many[3]}",
    "jax.typeof(x).vma": "jax.typeof(x).vma",
    "with_sharding_constraint on an explicit mesh": "there = jax.device_put(x, NamedSharding(typed, P('i')))\n"
    "moved = jax.jit(lambda v: jax.lax.with_sharding_constraint(v, NamedSharding(typed, P())))(there)\n"
    "assert moved.is_fully_replicated",
    "jax.ops.index_update": "jax.ops.index_update(x, 0, 1.0)",
    "from jax.config import config": "from jax.config import config",
    "experimental.optimizers": "from jax.experimental import optimizers",
    "DeviceArray": "from jax.interpreters.xla import DeviceArray",
    "jax.random.KeyArray": "jax.random.KeyArray",
    "jax.linear_util": "from jax import linear_util as lu",
    "jax.xla_computation": "jax.xla_computation(lambda v: v)(x)",
    "jax.experimental.host_callback": "import jax.experimental.host_callback as hcb",
    "jax.core.Primitive": "jax.core.Primitive('mine')",
    "P(...) == tuple": "assert P('i', None) == ('i', None)",
}
FORMS = [(number, row, form) for number, row in ROWS.items() for form in row.old_apis]
CASES = pytest.mark.parametrize(("number", "row", "form"), FORMS, ids=[form.text for *_, form in FORMS])


def no_gpu() -> str:
    """Return a JAX platform that this machine lacks: 'gpu' or, if it has a GPU, another vendor's platform."""
    for name in ("gpu", "rocm", "cuda"):
        try:
            jax.devices(name)
        except RuntimeError:
            return name
    raise AssertionError("this machine has GPUs of every vendor that JAX supports")


def try_old(code: str) -> tuple[str, str]:
    """Run old code. Return 'works', 'warns' or 'gone', and the warning or error message from JAX."""
    if "'gpu'" in code:
        code = code.replace("'gpu'", repr(no_gpu()))
    x, devices = jnp.arange(8.0), jax.devices("cpu")[:8]
    names = {"jax": jax, "jnp": jnp, "np": np, "P": P, "Mesh": Mesh, "NamedSharding": NamedSharding}
    names |= {"AxisType": AxisType, "x": x, "devices": devices}
    exec(MESHES, names)
    for name in ("shard_map", "host_callback"):  # these warn only at their first import
        sys.modules.pop(f"jax.experimental.{name}", None)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            exec(code, names)
        except Exception as error:
            return "gone", f"{type(error).__name__}: {error}"
    warnings_shown = [
        str(w.message)
        for w in heard
        if issubclass(w.category, (DeprecationWarning, UserWarning)) and "deprecated" in str(w.message)
    ]
    return ("warns", warnings_shown[0]) if warnings_shown else ("works", "")


@CASES
def test_the_table_gives_the_status_on_the_installed_jax(number, row, form):
    state, message = try_old(OLD[form.text])
    assert state == form.status(jax.__version__), message


@CASES
def test_the_error_message_leads_to_the_row(number, row, form):
    state, message = try_old(OLD[form.text])
    if state == "works" or row.silent:
        return
    answer = find_answer(message, jax.__version__)
    assert answer and answer.row == number, message
    if number == 24:
        return  # the page's index doesn't list these names
    targets = []
    [index] = [cell for cell in PAGE.cells if cell.id == "index"]
    for line in index.source.splitlines():
        if re.search(r"\[(\d+)\]\(#Row-\1\)", line):
            words, target, _ = line.strip("| ").split(" | ")
            if any(part in message for part in re.findall(r"`([^`]+)`", words) if part != "with mesh:"):
                targets.append(int(re.search(r"\d+", target)[0]))
    assert number in targets, message


def test_the_row_on_missing_gpus_on_a_machine_with_a_gpu(monkeypatch, capsys):
    """Simulate an NVIDIA GPU, for which 'gpu' and 'cuda' work, so the old API runs, but 'rocm' raises an error."""
    real = jax.devices
    gpu = real("cpu")[7:8]
    monkeypatch.setattr(jax, "devices", lambda name=None: gpu if name in ("gpu", "cuda") else real(name))
    [(number, row, form)] = [case for case in FORMS if "gpu" in case[2].text]
    assert no_gpu() == "rocm"
    test_the_table_gives_the_status_on_the_installed_jax(number, row, form)
    test_the_error_message_leads_to_the_row(number, row, form)
    [cell] = [cell for cell in PAGE.cells if cell.id == f"row-{number}"]
    exec(cell.source, {"jax": jax, "show_outcome": show_outcome, "device_text": device_text})
    assert capsys.readouterr().out == "old: it runs, with no warning\nnew: cpu:0\n"


@CASES
def test_the_checker_reports_the_row_and_the_line(number, row, form):
    header = f"{HEAD}devices = jax.devices()\nx = jnp.arange(8.0)\n{MESHES}"
    assert find(header) == []
    first = header.count("\n") + 1
    findings = find(f"{header}{OLD[form.text]}\n")
    assert number in {finding.row for finding in findings}
    assert all(finding.line >= first for finding in findings)
    allowed = {11} if form.text in ("jax.shard_map(check_rep=)", "auto=", "in_specs that reshard") else set()
    assert {finding.row for finding in findings} <= {number} | allowed


def test_the_appendix_contains_each_row_once_and_links_to_it():
    headings = re.findall(r"^### Row (\d+)$", "\n".join(cell.source for cell in PAGE.cells), re.M)
    assert sorted(int(number) for number in headings) == list(ROWS) == list(range(1, 25))
    [index] = [cell for cell in PAGE.cells if cell.id == "index"]
    assert sorted({int(n) for n in re.findall(r"\[(\d+)\]\(#Row-\1\)", index.source)}) == list(ROWS)
    for number in ROWS:
        assert any(cell.id == f"row-{number}" and cell.cell_type == "code" for cell in PAGE.cells)


@pytest.mark.parametrize("path", notebooks.lessons(), ids=lambda path: path.stem)
def test_no_lesson_uses_an_old_api(path):
    matches = [(place, code, row) for place, code, row, _ in report(path)]
    if notebooks.number(path) == "90":
        assert len({row for *_, row in matches}) > 15
    else:
        assert matches == []


NEW = """
from jax import lax
import jax.numpy as numbers
from functools import partial
other = object()
other.tree_map(1)
other.device(3)
mesh = jax.make_mesh((8,), ("i",), axis_types=(AxisType.Auto,))
with jax.set_mesh(mesh):
    y = jax.tree.map(lambda leaf: leaf, 1)
step = jax.jit(jax.shard_map(lambda v: lax.psum(v, "i"), mesh=mesh, in_specs=P("i"), out_specs=P()))
@partial(jax.shard_map, mesh=mesh, in_specs=P("i"), out_specs=P())
def total(v):
    return lax.psum(v, "i")
jax.jit(total)
try:
    jax.devices("gpu")
except RuntimeError:
    pass
jax.jit(lambda v: jax.device_put(v, NamedSharding(mesh, P("i"))))
P("i") == P("i", None)
class Pump:
    def device(self): ...
Pump().device()
explicit = jax.make_mesh((8,), ("i",), axis_types=(AxisType.Explicit,))
laid = jax.sharding.reshard(y, NamedSharding(explicit, P("i")))
jax.shard_map(abs, mesh=explicit, in_specs=P("i"), out_specs=P("i"))(laid)
@jax.jit
def outer(v):
    def body(carry, x):
        return carry + lax.psum(x, "i"), None
    return jax.shard_map(lambda v: lax.scan(body, 0.0, v)[0], mesh=mesh, in_specs=P("i"), out_specs=P())(v)
"""


def test_the_checker_reports_nothing_in_new_code():
    assert find(HEAD + NEW) == []


@pytest.mark.parametrize(
    ("code", "row"),
    [
        ("import jax.numpy as numbers\nnumbers.random.rand(3)", 1),
        ("from jax import tree_map as mapped", 7),
        ("from jax.lax import pvary", 14),
        ("import jax.experimental.pjit as p\nstep = p.pjit(abs)", 10),
        ("import jax\nfrom jax import lax\n@jax.jit\ndef f(v):\n    return lax.pmean(v, 'i')", 20),
        ("import jax\ndef f(v):\n    return jax.lax.psum(v, 'i')\ng = jax.jit(f)", 20),
        ("import jax\nd = jax.devices()\n@jax.jit\ndef f(v):\n    return jax.device_put(v, d[1])", 21),
        ("import jax\nf = jax.pmap(lambda v: v)\ng = jax.pmap(f)", 18),
        ("from jax.sharding import PartitionSpec\n('i',) != PartitionSpec('i')", 22),
        ("import jax\nclass T:\n    def run(self):\n        with self.mesh:\n            pass", 12),
        ("import jax\ndef f(mesh):\n    with mesh:\n        pass", 12),
        ("import jax\nd0, d1 = jax.devices()[:2]\nf = jax.jit(lambda v: jax.device_put(v, device=d1))", 21),
        ("import jax\nif jax.devices(backend='gpu'):\n    pass", 19),
        ("import jax\njax.tree_multimap(abs, 1)", 7),
        ("from jax.experimental import PartitionSpec", 2),
        ("from jax.experimental.pjit import pjit\npjit(abs, in_axis_resources=None)", 10),
        ("import jax.numpy as jnp\nprint(jnp.ones(3).device())", 6),
        ("def f(a):\n    return a.sharding.spec == ('i',)", 22),
        ("import jax.numpy as jnp\nprint((2 * jnp.ones(3)).device())", 6),
        ("import jax.numpy as jnp\nx = jnp.ones(3)\nprint((-x[0]).sum().device())", 6),
        ("import jax\nf = jax.pmap(lambda x: jax.pmap(lambda y: y)(x))", 18),
        ("import jax\n@jax.pmap\ndef f(x):\n    return jax.pmap(abs)(x)", 18),
        ("import jax\njax.shard_map(abs, **{'check_rep': False})", 11),
        ("import jax\nkw = dict(check_rep=False)\njax.shard_map(abs, **kw)", 11),
        ("import jax\nc = jax.jit(abs).lower(1.0).compile()\nc.compiler_ir()", 24),
        ("import jax\njax.jit(abs).lower(1.0).compile().compiler_ir('hlo')", 24),
        ("from jax.sharding import AbstractMesh\nAbstractMesh((('i', 8),))", 24),
        ("from jax.sharding import AbstractMesh\npairs = [('i', 8), ('j', 2)]\nAbstractMesh(pairs)", 24),
    ],
)
def test_the_checker_resolves_names(code, row):
    assert {finding.row for finding in find(code)} == {row}


MAPPED = "jax.shard_map, mesh=typed, in_specs=P('i'), out_specs=P('i')"
WAYS = {
    "direct": f"jax.shard_map(abs{MAPPED[13:]})(whole)",
    "jit": f"step = jax.jit(jax.shard_map(abs{MAPPED[13:]}))\nstep(whole)",
    "decorator": f"@partial({MAPPED})\ndef f(v): return v\nf(whole)",
    "decorator in jit": f"@jax.jit\n@partial({MAPPED})\ndef f(v): return v\nf(whole)",
    "named": f"@jax.shard_map({MAPPED[15:]})\ndef f(v): return v\njax.jit(f)(whole)",
    "partial": f"mapped = partial({MAPPED})\nmapped(abs)(whole)",
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("spec", "row"), [("P()", {17}), ("P('i')", set())])
def test_in_specs_that_reshard_are_found_in_every_form(way, spec, row):
    """Test forms that, on JAX 0.10.2 and 0.12.0.1, raise an error for an array sharded as P(), but not as P('i')."""
    placed = f"from functools import partial\nwhole = jax.device_put(jnp.ones((8, 3)), NamedSharding(typed, {spec}))\n"
    assert {finding.row for finding in find(f"{HEAD}{MESHES}{placed}{WAYS[way]}\n")} == row


def test_the_record_agrees_with_the_installed_jax():
    """Compare the record of the installed JAX's names with six of its modules.

    tools/maintenance/jax_names.py recorded the names of all modules.
    """
    import jax

    record = Record(jax.__version__)
    if record.version != jax.__version__:
        pytest.skip(f"JAX {jax.__version__} is not recorded")
    for module in (jax, jax.numpy, jax.lax, jax.sharding, jax.tree_util, jax.random):
        recorded = record.names(module.__name__)
        current_names = {name for name in vars(module) if not name.startswith("_")}
        assert {name for name in recorded if not hasattr(module, name)} == set()
        missing = {name for name in current_names - recorded if not record.is_module(f"{module.__name__}.{name}")}
        assert missing <= {"jaxlib", "test_util", "collect_profile"}


def test_modules_that_need_an_import_are_not_imported_by_jax():
    code = "import jax, sys\nprint([module for module in sys.argv[1:] if module in sys.modules])"
    process = subprocess.run([sys.executable, "-c", code, *NEEDS_IMPORT], capture_output=True, text=True)
    assert process.stdout == "[]\n"
