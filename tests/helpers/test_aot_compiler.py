"""Test compilation for absent chips, and the recorded plans that replace it if a compiler is missing."""

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
from jax.experimental import mesh_utils
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from shardcost import Collective, Cost, Memory, cost, targets

from tests import lesson_lint
from tools.lessons import notebooks
from tools.maintenance import record_plans
from utils import aot_compiler
from utils.devices import release_numbers
from utils.mesh import make_mesh

NUMBER = tuple(int(n) for n in jax.__version__.split(".")[:2])
# PAIR is true if this JAX can read all the lessons' programs that this libtpu compiles. JAX 0.10.2 can read those of
# libtpu 0.0.42.1, and JAX 0.12.0.1 can read those of libtpu 0.0.52, but JAX 0.10.2 can't read those of libtpu 0.0.52.
LIBTPU = importlib.metadata.version("libtpu") if importlib.util.find_spec("libtpu") else ""
PAIR = LIBTPU and (NUMBER >= (0, 12) or (NUMBER >= (0, 10) and release_numbers(LIBTPU) < (0, 0, 43)))
COMPILES = pytest.mark.skipif(not PAIR, reason="needs libtpu, and a JAX that can read its programs")
RECORDED = aot_compiler.recorded_plans()


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """Start without compiled plans and without known compilers, and restore the environment after the test."""
    monkeypatch.setattr(aot_compiler, "_can_compile", {})
    monkeypatch.setattr(aot_compiler, "_plans", {})
    for name, value in targets.TPU_ENVIRONMENT.items():  # start() changes these, so restore them afterwards
        monkeypatch.setenv(name, value)


def test_a_missing_compiler_is_reported_in_one_line(monkeypatch, capsys):
    """Test that start() prints shardcost's error. Shardcost's own tests check that the error names what to install."""
    monkeypatch.setattr(
        aot_compiler, "TRIAL", "from shardcost.targets import TargetError as E; raise E('it needs libtpu')"
    )
    aot_compiler.check_compilers()
    assert capsys.readouterr().out == "it needs libtpu. The results for TPUs below come from the course's record.\n"


@pytest.mark.skipif(NUMBER >= (0, 10), reason="needs a JAX that can't compile for absent devices")
def test_an_old_jax_reads_the_record(capsys):
    aot_compiler.check_compilers("tpu", "cuda")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert all(line.startswith(f"JAX {jax.__version__} cannot compile for absent devices") for line in lines)


@pytest.mark.parametrize(
    "trial, words",
    [
        (f"import os; os.kill(os.getpid(), {int(signal.SIGSEGV)})", "(signal 11)"),
        ("raise ValueError('no such chip')", "(ValueError: no such chip)"),
        ("raise SystemExit(3)", "A trial compile for v5e:2x2 failed"),
    ],
)
def test_a_crashing_trial_compile_is_reported(trial, words, monkeypatch, capsys):
    monkeypatch.setattr(aot_compiler, "TRIAL", trial)
    aot_compiler.check_compilers()
    output = capsys.readouterr().out
    assert output.count("\n") == 1 and words in output and "jax[tpu]" in output and "then restart" in output
    assert aot_compiler.mesh("v5e:2x4", (8,), ("i",)).size == 8  # an abstract mesh, without devices


def test_a_mesh_requires_start():
    with pytest.raises(RuntimeError, match=r"call aot_compiler.check_compilers\(\) first"):
        aot_compiler.mesh("v5e:2x4", (8,), ("i",))


def test_without_a_compiler_plans_are_read_from_the_record(monkeypatch):
    monkeypatch.setattr(aot_compiler, "_can_compile", {"tpu": False, "cuda": False})
    never = lambda: pytest.fail("compiled")  # noqa: E731
    # Each chip stores a 64th of two (2048, 8192) bfloat16 arrays. To gather them, it sends 63 pieces of each.
    assert aot_compiler.compiled_plan("one layer, FSDP", never).sent == {
        "all-gather": (2, 2 * 63 * 2048 * 8192 * 2 // 64)
    }
    # Each of eight chips sends its eighth of a (4096, 4096) bfloat16 array to seven others.
    sent = aot_compiler.compiled_plan("weights, bfloat16, 4096", never).sent
    assert sent == {"all-gather": (1, 7 * 4096 * 4096 * 2 // 8)}
    with pytest.raises(LookupError, match="no 'mine'; to compile your own programs, install libtpu"):
        aot_compiler.compiled_plan("mine", never)
    with pytest.raises(LookupError, match=r"no 'mine, h100:8'; .* install jax-cuda12-plugin"):
        aot_compiler.compiled_plan("mine, h100:8", never)
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"RESOURCE_EXHAUSTED.*exceeds available HBM \(15.75G\)\.$"):
        aot_compiler.compiled_plan("data, 8, v5e:2x4", never)


def test_a_changed_program_is_compiled_again(monkeypatch):
    """Compile two programs with the same label: the first gathers eight 8-byte pieces, and the second sends nothing."""
    monkeypatch.setattr(aot_compiler, "_can_compile", {"tpu": True})
    mesh = make_mesh((8,), ("i",))
    cut, whole = (NamedSharding(mesh, spec) for spec in (P("i"), P()))
    x = jax.ShapeDtypeStruct((16,), "float32", sharding=cut)

    def compiled(out):
        return jax.jit(lambda x: x, out_shardings=out).lower(x).compile()

    assert aot_compiler.compiled_plan("mine", compiled, whole).sent == {"all-gather": (1, 7 * 8)}
    assert aot_compiler.compiled_plan("mine", lambda: cost(compiled(cut))).sent == {}
    assert list(aot_compiler.compiled_plans()) == ["mine"]


def test_a_summary_has_totals_by_kind():
    """Add up the collectives of a ring of four devices.

    Each of the two gathers of 8-byte pieces sends 3 * 8 = 24 bytes and runs three times, so they send 144 bytes. Each
    all-reduce of 8 bytes sends 2 * 3/4 * 8 = 12 bytes; one runs once and the other twice, so they send 36 bytes.
    """
    ring = ((0, 1, 2, 3),)
    piece = (("f32", (2,)),)
    program_cost = Cost(
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
    assert aot_compiler.summarize(program_cost) == aot_compiler.CompiledPlan(
        {"all-gather": (6, 144), "all-reduce": (3, 36)},
        {"all-gather": 3},
        flops=7,
        arguments=5,
        peak=6,
        links={2: 12, 6: 24},
    )
    assert aot_compiler.summarize(program_cost).bytes_sent == 180
    assert aot_compiler.plan_from_json(
        json.loads(json.dumps(asdict(aot_compiler.summarize(program_cost))))
    ) == aot_compiler.summarize(program_cost)


LOCKED = """
import sys
from utils import aot_compiler
aot_compiler.check_compilers()
import jax
from jax.sharding import NamedSharding, PartitionSpec as P
mesh = aot_compiler.mesh("v5e:2x4", (8,), ("i",))
x = jax.ShapeDtypeStruct((1024, 128), "float32", sharding=NamedSharding(mesh, P("i")))
print(aot_compiler.compiled_plan("mine", lambda: jax.jit(lambda x: x.sum(0)).lower(x).compile()).sent, flush=True)
sys.stdin.read()
"""


@COMPILES
@pytest.mark.other_versions
def test_two_processes_can_compile_at_once():
    """Test that two processes can use the compiler at the same time.

    To sum 128 float32 numbers (512 bytes) over eight chips, each chip sends 2 * 7/8 * 512 = 896 bytes.
    """
    environment = {name: value for name, value in os.environ.items() if name not in targets.TPU_ENVIRONMENT}
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    run = [sys.executable, "-c", LOCKED]
    both = [
        subprocess.Popen(run, **pipes, text=True, cwd=notebooks.ROOT, env={**environment, "JAX_PLATFORMS": "cpu"})
        for _ in range(2)
    ]
    lines = [[process.stdout.readline() for _ in range(2)] for process in both]  # by now, both processes wait for stdin
    for process, (ready, sent) in zip(both, lines, strict=True):
        _, errors = process.communicate(timeout=60)
        assert "ready to compile" in ready, errors
        assert sent == "{'all-reduce': (1, 896)}\n"
        assert errors == ""


# COURSE_PLANS selects the plans to recompile. `make test-newest`, which is part of .ci/run, recompiles the small ones
# ("small"). The weekly run recompiles all plans for TPUs ("1"), and in `make check-costs`, which installs JAX's CUDA
# plugin, all plans for GPUs ("gpus"). All other runs recompile only ALWAYS: a product, a layer and a program that the
# compiler rejects.
WHICH = os.environ.get("COURSE_PLANS", "")
# A new compiler release may change the counts and the memory of a full training step by a few per cent.
WHOLE_STEP = re.compile(r"(data|FSDP|tensor|both), |64 v6e|64 h100")
LIGHT = [label for label in RECORDED if not WHOLE_STEP.match(label)]
ALWAYS = ["weights, bfloat16, 4096", "one layer, FSDP", "data, 8, v5e:2x4"]
SLOW = {  # each takes at least half a minute to compile
    label for lesson in ("08", "19") for label in aot_compiler.recorded_plans(lesson) if label not in {*LIGHT, *ALWAYS}
}


def test_every_compiling_lesson_has_a_record_with_unique_labels():
    recorded = {path.stem: list(aot_compiler.recorded_plans(path.stem)) for path in aot_compiler.RECORDS.glob("*.json")}
    assert sorted(recorded) == record_plans.lessons_with_plans()
    assert sorted(RECORDED) == sorted(label for labels in recorded.values() for label in labels)


def selected_labels(lesson: str) -> list[str]:
    """Return the labels of the lesson's plans that COURSE_PLANS selects."""
    gpus = {label for label in RECORDED if aot_compiler.platform_of(label) == "cuda"}
    selections = {
        "": set(ALWAYS),
        "small": set(RECORDED) - SLOW - gpus,
        "1": set(RECORDED) - gpus,
        "gpus": gpus,
    }[WHICH]
    return [label for label in aot_compiler.recorded_plans(lesson) if label in selections]


@COMPILES
@pytest.mark.other_versions
@pytest.mark.long
@pytest.mark.parametrize("lesson", list(filter(selected_labels, record_plans.lessons_with_plans())))
def test_the_record_agrees_with_the_compiler(lesson):
    labels = selected_labels(lesson)
    code = f"""import json; from tools.maintenance import record_plans
print(json.dumps(record_plans.compile_plans({lesson!r}, {labels!r})))"""
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=notebooks.ROOT,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},  # without it, JAX doesn't load its CUDA plugin here
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    measured = json.loads(run.stdout)
    assert sorted(measured) == sorted(labels)
    lesson_lint.fail_with(plan_faults(measured))


def _normalize_error(error):
    """Remove the error code, which older releases don't print, and sizes such as (15.75G) from an error message."""
    return re.sub(r"(?<=: )E\d+: \w+: |\([\d.]+G\)", "", error)


def plan_faults(plans: dict[str, dict]) -> list[str]:
    """Return the differences between compiled and recorded plans.

    The numbers of a large program may differ by a few per cent, as they do between releases of libtpu.
    """
    faults = []
    for label, fields in plans.items():
        recorded, plan = RECORDED[label], aot_compiler.plan_from_json(fields)
        if label in LIGHT:
            near = abs(plan.peak - recorded.peak) <= 1e-3 * recorded.peak  # allow for a few memory pages
            links = recorded.links and plan.links  # old records don't list the links
            if replace(plan, peak=0, links={}) != replace(recorded, peak=0, links={}) or not near:
                faults.append(f"{label}: recorded {recorded}, compiled {plan}")
            elif links and links != recorded.links:
                faults.append(f"{label}: recorded {recorded.links}, compiled {plan.links}")
            continue
        if bool(plan.error) != bool(recorded.error) or _normalize_error(plan.error) != _normalize_error(recorded.error):
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


@COMPILES
def test_lesson_08_uses_jaxs_orders_of_chips():
    """Compare the chip orders in lesson 08 with JAX's.

    In the ring through all sixteen chips of a 4 x 4 grid, each step is one hop. The ends of a row are three hops apart.
    """
    cells = {cell.id: cell.source for cell in notebooks.read(notebooks.lesson("08")).cells}
    exec(cells["places-run"], space := {"np": np})
    exec(cells["rings"], space)
    orders = {("v5e:2x4", (8,)): space["ORDERS"]["v5e:2x4"], ("v5e:4x2", (8,)): space["ORDERS"]["v5e:4x2"]}
    orders |= {("v5e:4x4", (16, 1)): space["SNAKE"], ("v5e:4x4", (4, 4)): space["ROWS"]}
    for (name, sizes), order in orders.items():
        chips = mesh_utils.create_device_mesh(sizes, targets.devices(name))
        assert " ".join(f"{chip.coords[0]}{chip.coords[1]}" for chip in chips.flat) == order
    ring, rows = space["lines"].values()
    assert (abs(np.roll(ring, -1, 0) - ring).sum(-1) == 1).all()
    assert (abs(np.roll(rows, -1, 0) - rows).sum(-1) == np.array([[1], [1], [1], [3]])).all()


def test_the_record_against_a_manual_calculation():
    """Compare the recorded size of a chip's arguments and its FLOPs with values derived from the model's dimensions."""
    layers, table = 24 * (4 * 2048**2 + 2 * 2048 * 8192), 32768 * 2048
    # For each token, a weight takes 2 FLOPs in the forward pass and 4 in the backward pass. Recomputing the layers
    # takes another 2 for each of their weights, except those of the last product. Attention's two products over 1024
    # tokens take 4 x 1024 x 2048 FLOPs in the forward pass, as many when recomputed, and twice as many backward.
    flops = 8 * layers - 24 * 2 * 2048 * 8192 + 6 * table + 24 * 4 * 4 * 1024 * 2048
    for layout, share, rows in [("FSDP", 64, 1), ("tensor", 8, 8), ("both", 64, 4)]:
        for batch in (1, 4):  # sequences per chip
            label = f"{layout}, {64 * batch}, v5e:8x8"
            state = 12 * (layers + table) // share  # the upper bound also includes the tokens and padding
            assert state <= RECORDED[label].arguments <= state + 2 * batch * rows * 1025 * 4 + 4096, label
            assert RECORDED[label].flops == 1024 * batch * flops, label
    # The state is sharded over eight GPUs, and each GPU processes eight sequences.
    gpu = RECORDED["FSDP, 64, h100:8"]
    assert gpu.flops == 1024 * 8 * flops and 0 <= gpu.arguments - 12 * (layers + table) // 8 < 8 * 1025 * 4 + 4096


@COMPILES
@pytest.mark.parametrize("sizes", [(8, 8), (16, 4)])
def test_the_chips_along_model_form_a_row(sizes):
    """Test that chips that are consecutive along `model` are neighbours, but the last and the first aren't.

    Such a row isn't a ring, so lesson 08 uses half the rate for this axis.
    """
    chips = mesh_utils.create_device_mesh(sizes, targets.devices("v5e:8x8"), allow_split_physical_axes=True)
    at = np.array([chip.coords for chip in chips.flat]).reshape(*sizes, 3)
    assert (abs(np.diff(at, axis=1)).sum(-1) == 1).all()
    assert (abs(at[:, -1] - at[:, 0]) == [sizes[1] - 1, 0, 0]).all()


def test_the_opening_picture_of_lesson_08_matches_the_record():
    cells = {cell.id: cell.source for cell in notebooks.read(notebooks.lesson("08")).cells}
    [h100, v5e] = [float(n) for n in re.search(r'needs": \[(.*?)\]', cells["opening"])[1].split(", ")]
    gpu = RECORDED["data, 8, h100:8"]
    [gib] = re.findall(r"temporaries \(([\d.]+)G\)", RECORDED["data, 8, v5e:2x4"].error)
    assert (round(gpu.peak / 1e9, 1), round(float(gib) * 2**30 / 1e9, 1)) == (h100, v5e)
    assert f"each GPU sends {gpu.bytes_sent / 1e9:.1f} GB" in cells["title"]


def test_lesson_08_states_the_versions_of_its_record():
    made_with = json.loads((aot_compiler.RECORDS / "08.json").read_text(encoding="utf-8"))["made with"]
    cells = notebooks.read(notebooks.lesson("08")).cells
    prose = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown").replace("JAX ", "jax ")
    assert [pair for pair in map(" ".join, made_with.items()) if pair not in prose] == []


@COMPILES
@pytest.mark.other_versions
def test_a_collective_matrix_product_sends_in_both_directions():
    """Count the transfers of a collective matrix product on n = 8 devices.

    Each device sends once, and then once in each direction in each of n/2 iterations, as the lesson says. It computes
    an eighth of the product.
    """
    cut = NamedSharding(Mesh(mesh_utils.create_device_mesh((8,), targets.devices("v5e:2x4")), ("i",)), P("i"))
    a = jax.ShapeDtypeStruct((8192, 8192), "bfloat16", sharding=cut)
    measured = cost(jax.jit(lambda a, b: a @ b, out_shardings=cut), a, a)
    assert {c.kind for c in measured} == {"collective-permute"}
    assert {to: sum(c.execution_count for c in measured if (0, to) in c.groups) for to in (1, 7)} == {1: 5, 7: 4}
    assert measured.flops == 2 * 8192**3 // 8


@COMPILES
@pytest.mark.other_versions
def test_a_gather_compiled_to_a_sum():
    """Test that on 64 v5p chips, XLA gathers by summing zero-padded pieces, over all six links of each chip."""
    mesh = Mesh(mesh_utils.create_device_mesh((64,), targets.devices("v5p:4x4x4")), ("i",))
    cut = NamedSharding(mesh, P("i"))
    w = jax.ShapeDtypeStruct((2048, 8192), "bfloat16", sharding=cut)
    x = jax.ShapeDtypeStruct((64, 1024, 2048), "bfloat16", sharding=cut)
    f = jax.grad(lambda w, x: jax.numpy.tanh(x @ w).astype("float32").mean())
    compiled = jax.jit(f, out_shardings=cut).lower(w, x).compile()
    text = compiled.as_text()
    for words in ('"emitter":"RotatedPincerEmitter"', '"strategy":"UniDirectionNDRingStrategy"', "dim_sizes:4,4,4"):
        assert words in text
    assert [(c.kind, c.execution_count, c.links) for c in cost(compiled)] == [("all-reduce", 1, 6)] * 2
    assert " dynamic-update-slice(" in text


@pytest.mark.parametrize(("label", "package"), [("FSDP, h100:8", "jax-cuda12-plugin"), ("FSDP, v5e:2x4", "libtpu")])
def test_an_unreadable_program_names_its_own_compiler(label, package, monkeypatch):
    monkeypatch.setattr(aot_compiler, "_can_compile", {"tpu": True, "cuda": True})
    monkeypatch.setattr(aot_compiler.importlib.metadata, "version", {package: "1.2.3"}.__getitem__)

    def compile_it():
        raise jax.errors.JaxRuntimeError("INTERNAL: unknown opcode")

    with pytest.raises(RuntimeError, match=f"cannot read what {package} 1.2.3 wrote"):
        aot_compiler.compiled_plan(label, compile_it)
