"""Test that each script in examples/ starts without arguments on any number of devices, and explains its limits."""

from __future__ import annotations

import ast
import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from tests.examples.runs import EXAMPLES, TIME, clean_environment
from tools.lessons import embed_scripts

pytestmark = pytest.mark.once

SCRIPTS = {path.name: path for path in sorted(EXAMPLES.glob("*.py"))}
DEVICES = 1, 2, 4, 8
# Run several command lines in one process, because importing JAX takes longer than parsing them.
DRIVER = """\
import contextlib, io, json, runpy, sys

results = []
for script, *arguments in json.load(sys.stdin):
    sys.argv, out, err, status = [script, *arguments], io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            runpy.run_path(script, run_name="__main__")
        except SystemExit as end:
            status = end.code
        except BaseException as error:
            status = f"{type(error).__name__}: {error}"
    results.append([status, out.getvalue(), err.getvalue()])
json.dump(results, sys.stdout)
"""
# Wrong arguments for each script, each with part of the error message that the script prints on eight devices.
WRONG = {
    "00_train_digits.py": {"0": "epochs must be at least 1"},
    "01_time_it.py": {"0": "multiple of the number of devices, 8", "1201": "multiple of the number of devices, 8"},
    "02_shard_params.py": {"50304 0": "must be at least 1"},
    "03_what_does_it_send.py": {"8": "unrecognized arguments: 8", "--target h900:8": "is not h100:N"},
    "04_annotated_mlp.py": {"-1": "steps must be at least 1"},
    "05_overlapped_matmul.py": {
        "60 32 128256": "multiples of 8",
        "64 32 32": "words at least 40",
        "64 0": "at least 1",
    },
    "05b_check_gradient.py": {"3 1": "data must divide the 64 rows", "8 0": "model the 4 columns"},
    "06_train_data_parallel.py": {"0": "epochs must be at least 1"},
    "07_will_it_wait.py": {
        "3 1 8192": "data must divide 8192",
        "8 1 8191": "and the tokens",
        "8 -1": "must divide 32768",
    },
    "08_ask_the_pod.py": {
        "FSDP 0 --target here": "one or more sequences",
        "FSDP 63 --target here": "the dimension size is 63",
        "zero 64": "choose from",
        "data 64 --target here quickly": "unrecognized arguments: quickly",
        "data 64 --target v5e": "v5e: ",
    },
    "09_who_is_late.py": {"nowhere": "expected one *.xplane.pb file in nowhere, found 0"},
    "10_fsdp.py": {
        "check 2 0": "at least 1",
        "plan 1 2 3": "unrecognized arguments: 3",
        "run": "choose",
    },
    "11_tensor_parallel.py": {
        "8 8192 4097": "chips must divide the tokens",
        "8 8190": "divide the width",
        "0": "chips",
    },
    "12_pipeline.py": {"4 9": "must divide the number of microbatches", "0 8": "stages", "16 16": "JAX finds 8"},
    "13_ring_attention.py": {"1000001": "positive multiple of 800", "0": "positive multiple of 800"},
    "14_moe.py": {"0 0.1": "capacity factor must be positive", "1.25 -1": "no alpha negative", "nan": "positive"},
    "15_train_lm.py": {
        "3 1 1": "must divide the 8 rows",
        "1 1 3": "the 4 heads",
        "2 2 4": "needs 16 devices, and JAX finds 8",
    },
    "17_resume.py": {"run 0": "last must be at least 1", "run 12 5": "a multiple of 3"},
    "18_ring_matmul_kernel.py": {"0": "tokens must be at least 1"},
    "19_plan.py": {"63": "chips must be a power of two", "64 0": "at least 1", "64 inf": "finite"},
    "90_same_numbers.py": {"save numbers": "must end in .npz", "compare none.npz": "none.npz does not exist"},
    "train.py": {
        "--steps 0": "steps must be at least 1",
        "--coordinator a:1 --processes 2 --id 2": "--id must be from 0",
    },
}


def drive(folder: Path, commands: list[list[str]]) -> list[list]:
    """Run the command lines in one process on eight devices; return each one's exit status, stdout and stderr."""
    process = subprocess.run(
        [sys.executable, "-c", DRIVER],
        input=json.dumps(commands),
        cwd=folder,
        env=clean_environment(8, x64=False),
        capture_output=True,
        text=True,
        timeout=TIME,
    )
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


def start(folder: Path, script: str, *arguments: str, devices: int = 8) -> subprocess.CompletedProcess:
    """Run a copy of the script in this folder, under the name of a reader's copy."""
    copy = folder / embed_scripts.copy_name(SCRIPTS[script])
    copy.write_bytes(SCRIPTS[script].read_bytes())
    return subprocess.run(
        [sys.executable, copy.name, *arguments],
        cwd=folder,
        env=clean_environment(devices, x64=False),
        capture_output=True,
        text=True,
        timeout=TIME,
    )


def refusal(script: str, status: object, stderr: str) -> str:
    """Check that the script refused to run, and return the sentence after argparse's usage line."""
    assert status == 2, f"{script}: {status}\n{stderr}"
    usage, error, sentence = stderr.partition(".py: error: ")
    assert usage.startswith("usage: ") and error and sentence.count("\n") == 1, stderr
    return sentence.strip()


def assert_runs_or_explains(script: str, done: subprocess.CompletedProcess, devices: int) -> None:
    assert "Traceback" not in done.stderr, done.stderr
    if done.returncode:
        sentence = refusal(script, done.returncode, done.stderr)
        needs = f"needs? .*devices, and JAX finds {devices}|TPU support not installed"
        assert re.search(needs, sentence), sentence
    else:
        assert done.stdout and not re.search(r"(?<![\d,.])1 \w*devices\b", done.stdout), done.stdout


def test_help_and_wrong_arguments(tmp_path):
    """Test that --help prints the docstring, and that a wrong argument is refused in one sentence."""
    cases = [(script, "--help", "") for script in SCRIPTS]
    cases += [(script, words, sentence) for script in WRONG for words, sentence in WRONG[script].items()]
    for script in SCRIPTS:
        first = {"17_resume.py": "run "}.get(script, "")  # this script's first argument, a folder, may be any word
        cases += [(script, f"{first}many", "many"), (script, "--wrong", "unrecognized arguments: --wrong")]
    results = drive(tmp_path, [[str(SCRIPTS[script]), *words.split()] for script, words, _ in cases])
    for (script, words, sentence), (status, out, err) in zip(cases, results, strict=True):
        if words == "--help":
            assert (status, err) == (0, ""), (script, err)
            assert ast.get_docstring(ast.parse(SCRIPTS[script].read_text(encoding="utf-8"))) in out
        else:
            assert sentence in refusal(f"{script} {words}", status, err), (script, words)
            assert out == "", (script, words)


@pytest.mark.parametrize(
    ("script", "devices"),
    [("05_overlapped_matmul.py", 1), ("10_fsdp.py", 2), ("12_pipeline.py", 1), ("15_train_lm.py", 1)],
)
def test_without_arguments_on_few_devices(tmp_path, script, devices):
    assert_runs_or_explains(script, start(tmp_path, script, devices=devices), devices)


@pytest.mark.other_versions
@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("script", SCRIPTS)
def test_without_arguments_on_any_number_of_devices(tmp_path, script, devices):
    done = start(tmp_path, script, devices=devices)
    assert_runs_or_explains(script, done, devices)
    if devices == 8:
        assert done.returncode == 0 or "TPU support not installed" in done.stderr, done.stderr


@pytest.mark.other_versions
@pytest.mark.parametrize("script", ["06_train_data_parallel.py", "17_resume.py"])
def test_a_finished_run_started_again_explains_itself(tmp_path, script):
    assert start(tmp_path, script).returncode == 0
    again = start(tmp_path, script)
    assert "already: ask for more, or delete it" in refusal(script, again.returncode, again.stderr)


@pytest.mark.other_versions
def test_without_libtpu_the_script_explains_what_to_install(tmp_path):
    code = "import runpy, sys; sys.modules['libtpu'] = None; sys.argv = [sys.argv[1]]; runpy.run_path(sys.argv[0])"
    command = [sys.executable, "-c", code, str(SCRIPTS["08_ask_the_pod.py"])]
    done = subprocess.run(command, cwd=tmp_path, env=clean_environment(1), capture_output=True, text=True, timeout=TIME)
    assert "TPU support not installed" in refusal(command[-1], done.returncode, done.stderr)


@pytest.fixture(scope="module")
def what_it_sends():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["what_does_it_send.py"])
        patch.setenv("JAX_NUM_CPU_DEVICES", "8")
        return runpy.run_path(str(SCRIPTS["03_what_does_it_send.py"]))["what_it_sends"]


def test_a_loop_of_unknown_length_counts_once(what_it_sends, capsys):
    @jax.shard_map(
        mesh=jax.make_mesh((8,), ("i",), axis_types=(AxisType.Auto,)), in_specs=(P("i"), P()), out_specs=P("i")
    )
    def program(x, steps):
        return jax.lax.fori_loop(0, steps, lambda _, y: x * jax.lax.psum(y, "i"), x)

    assert what_it_sends(program, jnp.ones(8 * 1024), 5) == 7168
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("7,168 bytes in a loop of unknown length or a branch")
    assert lines[1] == "  in all 7,168 bytes, counting each such loop and branch once"


@pytest.mark.parametrize("steps", [0, 5])
def test_what_a_small_program_sends(what_it_sends, capsys, steps):
    """Test an all-reduce of 1,024 float32 elements, in which each of 8 devices sends 2 * 7/8 * 4,096 = 7,168 bytes."""

    @jax.shard_map(mesh=jax.make_mesh((8,), ("i",), axis_types=(AxisType.Auto,)), in_specs=P("i"), out_specs=P())
    def program(x):  # per device: (1024,)
        if not steps:
            return jax.lax.psum(x, "i")
        varying = x - jax.lax.psum(x, "i")  # varying like the carry, so each iteration needs a psum
        return jax.lax.psum(jax.lax.fori_loop(0, steps, lambda _, y: varying * jax.lax.psum(y, "i"), x), "i")

    total = what_it_sends(program, jnp.ones(8 * 1024))
    lines = capsys.readouterr().out.splitlines()
    each = "  all-reduce among 8: sends 7,168 bytes"
    if steps:
        assert f"{each}, 5 times" in lines
        assert lines[-1] == f"  in all {total:,.0f} bytes"
        assert total == (steps + 2) * 7168
    else:
        assert lines == [each, "  in all 7,168 bytes"] and total == 7168
