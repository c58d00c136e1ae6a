"""Compiling for a pod that is not there: with libtpu and without, and the record that stands in for it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import asdict, replace

import jax
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from shardcost import Collective, Cost, Memory, cost

from tests import lesson_lint
from tools.lessons import notebooks
from tools.maintenance import record_plans
from utils import tpu_compiler
from utils.devices import release_numbers
from utils.mesh import make_mesh

NUMBER = tuple(int(n) for n in jax.__version__.split(".")[:2])
# A pair that reads all of the lesson's programs: 0.10.2 and 0.0.42.1 do, 0.12.0.1 and 0.0.52; 0.10.2 and 0.0.52 do not.
LIBTPU = importlib.metadata.version("libtpu") if importlib.util.find_spec("libtpu") else ""
PAIR = LIBTPU and (NUMBER >= (0, 12) or (NUMBER >= (0, 10) and release_numbers(LIBTPU) < (0, 0, 43)))
COMPILES = pytest.mark.skipif(not PAIR, reason="needs a libtpu, and a JAX that reads what it writes")
RECORDED = tpu_compiler.recorded_plans()


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(tpu_compiler, "_can_compile", [])
    monkeypatch.setattr(tpu_compiler, "_plans", {})
    monkeypatch.setattr(tpu_compiler, "_coordinates", {})
    for name in tpu_compiler.ENVIRONMENT:  # start() sets them: put them back afterwards
        monkeypatch.setenv(name, tpu_compiler.ENVIRONMENT[name])


def hide_libtpu(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "libtpu" else find(name, *rest)
    )


def test_without_libtpu_a_line_says_what_to_install(monkeypatch, capsys):
    hide_libtpu(monkeypatch)
    tpu_compiler.start()
    said = capsys.readouterr().out
    assert said.count("\n") == 1 and "No libtpu here" in said and "the course's record" in said
    assert ('pip install "jax[tpu]==' in said or 'pip install --upgrade "jax[tpu]"' in said) == (
        sys.platform == "linux" and os.uname().machine == "x86_64"
    )


def test_an_old_jax_is_told_so(monkeypatch, capsys):
    monkeypatch.setattr(jax, "__version__", "0.9.2")
    monkeypatch.setattr(importlib.util, "find_spec", lambda *_: True)
    tpu_compiler.start()
    assert capsys.readouterr().out.startswith(
        "JAX 0.9.2 is too old to compile for TPUs here, which takes 0.10 or newer."
    )


@COMPILES
@pytest.mark.parametrize(
    "trial, words",
    [
        (f"import os; os.kill(os.getpid(), {int(signal.SIGSEGV)})", "(signal 11)"),
        ("raise ValueError('no such chip')", "(ValueError: no such chip)"),
        ("print('something else')", "don't work together"),
    ],
)
def test_a_pair_that_dies_takes_nothing_with_it(trial, words, monkeypatch, capsys):
    monkeypatch.setattr(tpu_compiler, "TRIAL", trial)
    tpu_compiler.start()
    said = capsys.readouterr().out
    assert said.count("\n") == 1 and words in said and "jax[tpu]" in said and "then restart" in said
    assert tpu_compiler.mesh("v5e:2x4", (8,), ("i",)).size == 8  # without devices


@pytest.mark.parametrize(
    "version, libtpu, install",
    [
        ("0.10.2", "0.0.52", 'pip install "jax[tpu]==0.10.2"'),  # which brings 0.0.42.1
        ("0.10.2", "0.0.42.1", 'pip install --upgrade "jax[tpu]"'),
        ("0.10.2", "", 'pip install "jax[tpu]==0.10.2"'),
        ("0.7.2", "", 'pip install --upgrade "jax[tpu]"'),
    ],
)
def test_the_advice_is_a_pair_that_jax_names(version, libtpu, install, monkeypatch):
    monkeypatch.setattr(jax, "__version__", version)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: bool(libtpu) or None)
    monkeypatch.setattr(importlib.metadata, "version", lambda name: libtpu)
    needs = ["numpy>=2.0", 'libtpu==0.0.42.*; extra == "tpu"']
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: needs)
    assert tpu_compiler._install_command() == install


def test_what_comes_first_is_said():
    with pytest.raises(RuntimeError, match=r"call tpu_compiler.start\(\) first"):
        tpu_compiler.mesh("v5e:2x4", (8,), ("i",))


def test_without_a_compiler_plans_come_from_the_record(monkeypatch):
    monkeypatch.setattr(tpu_compiler, "_can_compile", [False])
    never = lambda: pytest.fail("compiled")  # noqa: E731
    # (1024, 1024) of float32 by an all-reduce on eight chips: 2 (7/8) of 4 MiB.
    assert tpu_compiler.plan("sums, float32", never).sent == {"all-reduce": (1, 2 * 7 * 2**22 // 8)}
    with pytest.raises(LookupError, match="no 'mine'; to compile programs of your own you need libtpu"):
        tpu_compiler.plan("mine", never)
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"RESOURCE_EXHAUSTED.*exceeds available HBM \(15.75G\)\.$"):
        tpu_compiler.plan("data, 64, v5e", never)


def test_a_changed_program_is_compiled_anew(monkeypatch):
    """Under the same label: first one gather of 64 bytes in all, cut eight ways, then none."""
    monkeypatch.setattr(tpu_compiler, "_can_compile", [True])
    mesh = make_mesh((8,), ("i",))
    cut, whole = (NamedSharding(mesh, spec) for spec in (P("i"), P()))
    x = jax.ShapeDtypeStruct((16,), "float32", sharding=cut)

    def compiled(out):
        return jax.jit(lambda x: x, out_shardings=out).lower(x).compile()

    assert tpu_compiler.plan("mine", compiled, whole).sent == {"all-gather": (1, 7 * 8)}
    assert tpu_compiler.plan("mine", compiled, cut).sent == {}
    assert list(tpu_compiler.as_record()["plans"]) == ["mine"]


def test_a_summary_adds_up_by_kind():
    """By hand: on a ring of 4 two gathers of 8 bytes each send 24, three times; a sum of 8 bytes sends 12."""
    ring = ((0, 1, 2, 3),)
    piece = (("f32", (2,)),)
    found = Cost(
        (
            Collective("all-gather", piece, (("f32", (8,)),), ring, 3, asynchronous=True),
            Collective("all-gather", piece, (("f32", (8,)),), ring, 3),
            Collective("all-reduce", piece, piece, ring, 1, links=2),
            Collective("all-reduce", piece, piece, ring, 2, links=6),
        ),
        flops=7,
        memory=Memory(arguments=5, outputs=5, temporaries=2, donated=5, peak=6),
        devices=4,
    )
    assert tpu_compiler.summarize(found) == tpu_compiler.Plan(
        {"all-gather": (6, 144), "all-reduce": (3, 36)},
        {"all-gather": 3},
        flops=7,
        arguments=5,
        peak=6,
        links={2: 12, 6: 24},
    )
    assert tpu_compiler.summarize(found).bytes_sent == 180
    assert tpu_compiler.plan_from_json(
        json.loads(json.dumps(asdict(tpu_compiler.summarize(found))))
    ) == tpu_compiler.summarize(found)


LOCKED = """
import sys
from utils import tpu_compiler
tpu_compiler.start()
import jax
from jax.sharding import NamedSharding, PartitionSpec as P
mesh = tpu_compiler.mesh("v5e:2x4", (8,), ("i",))
x = jax.ShapeDtypeStruct((1024, 128), "float32", sharding=NamedSharding(mesh, P("i")))
print(tpu_compiler.plan("mine", lambda: jax.jit(lambda x: x.sum(0)).lower(x).compile()).sent, flush=True)
sys.stdin.read()
"""


@COMPILES
@pytest.mark.elsewhere
def test_two_notebooks_at_once():
    """Both hold the compiler at the same time. (128 numbers of float32 added up on eight chips: 2 (7/8) 512 bytes.)"""
    environment = {name: value for name, value in os.environ.items() if name not in tpu_compiler.ENVIRONMENT}
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    run = [sys.executable, "-c", LOCKED]
    both = [
        subprocess.Popen(run, **pipes, text=True, cwd=notebooks.ROOT, env={**environment, "JAX_PLATFORMS": "cpu"})
        for _ in range(2)
    ]
    said = [[process.stdout.readline() for _ in range(2)] for process in both]  # neither ends before both have spoken
    for process, (ready, sent) in zip(both, said, strict=True):
        _, errors = process.communicate(timeout=60)
        assert "ready to compile" in ready, errors
        assert sent == "{'all-reduce': (1, 896)}\n"
        assert errors == ""  # and quietly


# `make test-newest`, which is part of .ci/run, compiles the small plans anew ("small"), the weekly run all ("1"); the
# others a sum, a gather and a program that is refused. (JAX 0.10 cannot read all of what the newest libtpu writes for a
# v5p.)
WHICH = os.environ.get("COURSE_PLANS", "")
LIGHT = [label for label in RECORDED if not label.endswith((", v5e", ", v5p")) and not label.startswith("64 v6e")]
ALWAYS = ["sums, float32", "weights, float32", "data, 64, v5e"]
LARGE = {
    label for lesson in ("08", "19") for label in tpu_compiler.recorded_plans(lesson) if label not in {*LIGHT, *ALWAYS}
}


def test_each_lesson_that_compiles_has_a_record_and_no_two_share_a_label():
    recorded = {path.stem: list(tpu_compiler.recorded_plans(path.stem)) for path in tpu_compiler.RECORDS.glob("*.json")}
    assert sorted(recorded) == record_plans.lessons_with_plans()
    assert sorted(RECORDED) == sorted(label for labels in recorded.values() for label in labels)


def wanted(lesson: str) -> list[str]:
    """The labels of its plans that are compiled anew here; lesson 19 has none but large ones."""
    asked = {"": set(ALWAYS), "small": set(RECORDED) - LARGE, "1": set(RECORDED)}[WHICH]
    return [label for label in tpu_compiler.recorded_plans(lesson) if label in asked]


@COMPILES
@pytest.mark.elsewhere
@pytest.mark.long
@pytest.mark.parametrize("lesson", list(filter(wanted, record_plans.lessons_with_plans())))
def test_the_record_is_what_the_compiler_says(lesson):
    labels = wanted(lesson)
    code = f"""import json; from tools.maintenance import record_plans
print(json.dumps(record_plans.compile_plans({lesson!r}, {labels!r})))"""
    run = subprocess.run([sys.executable, "-c", code], cwd=notebooks.ROOT, capture_output=True, text=True, timeout=900)
    assert run.returncode == 0, run.stderr[-2000:]
    found = json.loads(run.stdout)
    assert sorted(found["plans"]) == sorted(labels)
    lesson_lint.fail_with(plan_faults(found["plans"]))
    meshes = tpu_compiler._read_records(lesson)["coordinates"]
    assert found["coordinates"] == {mesh: meshes[mesh] for mesh in found["coordinates"]}


def _why(error):
    """The refusal without its number, which older releases do not have, and how much is missing."""
    return re.sub(r"(?<=: )E\d+: \w+: |\([\d.]+G\)", "", error)


def plan_faults(found: dict[str, dict]) -> list[str]:
    """What differs from the record. The large programs may, by a few per cent, from one libtpu to the next."""
    faults = []
    for label, fields in found.items():
        recorded, plan = RECORDED[label], tpu_compiler.plan_from_json(fields)
        if label in LIGHT:
            near = abs(plan.peak - recorded.peak) <= 1e-3 * recorded.peak  # a few pages more or less
            links = recorded.links and plan.links  # a record may be older than the links
            if replace(plan, peak=0, links={}) != replace(recorded, peak=0, links={}) or not near:
                faults.append(f"{label}: recorded {recorded}, compiled {plan}")
            elif links and links != recorded.links:
                faults.append(f"{label}: recorded {recorded.links}, compiled {plan.links}")
            continue
        if bool(plan.error) != bool(recorded.error) or _why(plan.error) != _why(recorded.error):
            faults.append(f"{label}: recorded {recorded.error!r}, compiled {plan.error!r}")
        for name in ("flops", "arguments"):
            if getattr(plan, name) != getattr(recorded, name):
                faults.append(f"{label}: {name} recorded {getattr(recorded, name):,}, compiled {getattr(plan, name):,}")
        for name, most in (("bytes_sent", 0.05), ("peak", 0.12)):
            was, now = getattr(recorded, name), getattr(plan, name)
            if abs(now - was) > most * was:
                faults.append(f"{label}: {name} recorded {was:,}, compiled {now:,}")
        if max(plan.sent, key=lambda k: plan.sent[k][1], default="") != max(
            recorded.sent, key=lambda k: recorded.sent[k][1], default=""
        ):
            faults.append(f"{label}: recorded {recorded.sent}, compiled {plan.sent}")
    return faults


def test_coordinates_by_hand(monkeypatch):
    """A ring of all sixteen chips of a 4 x 4 grid, from neighbour to neighbour; rows of four end three hops away."""
    monkeypatch.setattr(tpu_compiler, "_can_compile", [False])
    ring, rows = tpu_compiler.coordinates("v5e:4x4", (16, 1)), tpu_compiler.coordinates("v5e:4x4", (4, 4))
    assert (ring.shape, rows.shape) == ((16, 1, 3), (4, 4, 3))
    everywhere = [(x, y, 0) for x in range(4) for y in range(4)]
    assert sorted(map(tuple, ring.reshape(-1, 3))) == sorted(map(tuple, rows.reshape(-1, 3))) == everywhere
    hops = lambda at, axis: abs(at - np.roll(at, -1, axis)).sum(-1)  # noqa: E731
    assert (hops(ring, 0) == 1).all()
    for axis in (0, 1):
        assert (np.moveaxis(hops(rows, axis), axis, -1) == [1, 1, 1, 3]).all()
    # Eight: on 2 x 4 every second step has two hops; on 4 x 2 they go around the edge.
    for name, steps in (("v5e:2x4", [1, 2] * 4), ("v5e:4x2", [1] * 8)):
        assert hops(tpu_compiler.coordinates(name, (8,)), 0).tolist() == steps
    with pytest.raises(LookupError, match="no mesh 'v5e:2x2, 4'; to use a mesh of your own you need libtpu"):
        tpu_compiler.coordinates("v5e:2x2", (4,))


def test_the_record_by_hand():
    """What a chip is given, and the FLOPs of its products."""
    layers, table = 24 * (4 * 2048**2 + 2 * 2048 * 8192), 32768 * 2048
    # Each token: 2 FLOPs a weight forward, 4 backward, and 2 for the layers' second forward pass, which leaves out the
    # last product; and attention's two products over 1024 tokens, 4 x 1024 x 2048, four times.
    flops = 8 * layers - 24 * 2 * 2048 * 8192 + 6 * table + 24 * 4 * 4 * 1024 * 2048
    for layout, share, rows in [("FSDP", 64, 1), ("tensor", 8, 8), ("both", 64, 4)]:
        for batch in (1, 4):  # sequences for each chip
            label = f"{layout}, {64 * batch}, v5e"
            state = 12 * (layers + table) // share  # and the tokens, rounded up
            assert state <= RECORDED[label].arguments <= state + 2 * batch * rows * 1025 * 4 + 4096, label
            assert RECORDED[label].flops == 1024 * batch * flops, label


@pytest.fixture
def tpu(monkeypatch):
    monkeypatch.setattr(tpu_compiler, "_can_compile", [True])


@COMPILES
def test_an_axis_may_take_a_part_of_a_row(tpu):
    """Two of the four chips of a row; as a rule JAX refuses."""
    with pytest.raises(NotImplementedError, match="allow_split_physical_axes"):
        tpu_compiler.mesh("v5e:4x4", (8, 2), ("i", "j"))
    mesh = tpu_compiler.mesh("v5e:4x4", (8, 2), ("i", "j"), allow_split_physical_axes=True)
    assert dict(mesh.shape) == {"i": 8, "j": 2}
    assert len({tuple(chip.coords) for chip in mesh.devices.flat}) == 16


@COMPILES
@pytest.mark.parametrize("sizes", [(8, 8), (16, 4)])
def test_the_chips_along_model_lie_in_a_row(tpu, sizes):
    """Neighbours, and an open row: the last is not beside the first. From this lesson 08 takes half the rate."""
    mesh = tpu_compiler.mesh("v5e:8x8", sizes, ("data", "model"), allow_split_physical_axes=True)
    at = np.array([chip.coords for chip in mesh.devices.flat]).reshape(*sizes, 3)
    assert (abs(np.diff(at, axis=1)).sum(-1) == 1).all()
    assert (abs(at[:, -1] - at[:, 0]) == [sizes[1] - 1, 0, 0]).all()


@COMPILES
@pytest.mark.elsewhere
@pytest.mark.parametrize("bar, grid", list(enumerate([(4, 4), (8, 8), (16, 16)])))
def test_the_picture_at_the_top_of_lesson_08(tpu, bar, grid):
    """Its three numbers are typed: here are the compiler's refusals."""
    cells = {cell.id: cell.source for cell in notebooks.read(notebooks.lesson("08")).cells}
    [needed] = re.findall(r"^needed = \[(.*)\]", cells["opening"], re.M)
    space = {"__name__": "lesson", "devices": jax.devices()}
    for name in ("imports", "one-program", "shapes", "layouts", "layer", "step"):
        exec(cells[name], space)
    chips = grid[0] * grid[1]
    mesh = tpu_compiler.mesh(f"v5e:{grid[0]}x{grid[1]}", (chips, 1), ("data", "model"))
    with pytest.raises(jax.errors.JaxRuntimeError, match="RESOURCE_EXHAUSTED") as refused:
        space["step"](mesh, "data", chips)
    [found] = re.findall(r"temporaries \(([\d.]+)G\)", str(refused.value))
    assert abs(float(found) - float(needed.split(", ")[bar])) < 0.05


@COMPILES
@pytest.mark.elsewhere
def test_a_loop_goes_both_ways(tpu):
    """One send first, then n/2 turns with one each way, as the lesson says; and each device multiplies an eighth."""
    cut = NamedSharding(tpu_compiler.mesh("v5e:2x4", (8,), ("i",)), P("i"))
    a = jax.ShapeDtypeStruct((8192, 8192), "bfloat16", sharding=cut)
    found = cost(jax.jit(lambda a, b: a @ b, out_shardings=cut), a, a)
    assert {c.kind for c in found} == {"collective-permute"}
    assert {to: sum(c.times for c in found if (0, to) in c.groups) for to in (1, 7)} == {1: 5, 7: 4}
    assert found.flops == 2 * 8192**3 // 8


@COMPILES
@pytest.mark.elsewhere
def test_a_gather_that_adds_up(tpu):
    """On a v5p of 64 chips: the pieces in zeros are summed over all six links of a chip."""
    mesh = tpu_compiler.mesh("v5p:4x4x4", (64,), ("i",))
    cut = NamedSharding(mesh, P("i"))
    w = jax.ShapeDtypeStruct((2048, 8192), "bfloat16", sharding=cut)
    x = jax.ShapeDtypeStruct((64, 1024, 2048), "bfloat16", sharding=cut)
    f = jax.grad(lambda w, x: jax.numpy.tanh(x @ w).astype("float32").mean())
    compiled = jax.jit(f, out_shardings=cut).lower(w, x).compile()
    text = compiled.as_text()
    for words in ('"emitter":"RotatedPincerEmitter"', '"strategy":"UniDirectionNDRingStrategy"', "dim_sizes:4,4,4"):
        assert words in text
    assert [(c.kind, c.times, c.links) for c in cost(compiled)] == [("all-reduce", 1, 6)] * 2
    assert " dynamic-update-slice(" in text
