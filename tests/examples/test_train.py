"""Test that every way to start examples/train.py produces NumPy's losses, on any number of processes."""

from __future__ import annotations

import inspect
import re
import shlex
import subprocess
from pathlib import Path

import jax
import numpy as np
import pytest

from examples import train
from tests.examples import slurm
from tests.examples.runs import EXAMPLES, TIME, clean_environment, expected, losses, own_lines, run_together

pytestmark = pytest.mark.other_versions

README = (EXAMPLES / "README.md").read_text(encoding="utf-8")


def readme_commands(way: str) -> list[list[str]]:
    """Return the commands in the README.md section with this title, changed to use a free port."""
    [section] = re.findall(rf"(?s)^## {way}\n(.+?)(?=^## |\Z)", README, re.M)
    [port] = slurm.free_ports(1)
    section = section.replace("localhost:5000", f"localhost:{port}")
    return [shlex.split(line, comments=True) for line in re.findall(r"^python train\.py.*", section, re.M)]


def test_one_process_prints_the_readmes_losses():
    """Compare the losses with the README's approximately, because rounding in float32 may differ between processors."""
    [output] = run_together(readme_commands("One process"), x64=False)
    readme_output = re.findall(r"(?s)```\n(processes: 1.+?)```", README)[0]
    assert output.splitlines()[0] == readme_output.splitlines()[0] == "processes: 1, cpu devices: 8"
    assert (
        re.sub(r"[\d.]+$", "", readme_output, flags=re.M).split() == re.sub(r"[\d.]+$", "", output, flags=re.M).split()
    )
    np.testing.assert_allclose(losses(output), losses(readme_output), rtol=0, atol=1.5e-5)


def test_one_process_computes_numpys_losses():
    [output] = run_together([["python", "train.py"]])
    np.testing.assert_allclose(losses(output), expected(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("processes", [2, 4])
def test_several_processes_compute_the_same_losses(processes):
    commands = readme_commands("By hand")
    assert len(commands) == 2
    if processes == 4:
        assert commands[0][-3:] == ["2", "--id", "0"]
        commands = [[*commands[0][:-3], "4", "--id", str(index)] for index in range(4)]
    first, *others = run_together(commands)
    assert f"processes: {processes}, cpu devices: 8\n" in first
    np.testing.assert_allclose(losses(first), expected(), rtol=0, atol=1e-12)
    assert [own_lines(output) for output in others] == [[]] * (processes - 1)  # only process 0 prints


def test_the_timeouts_in_the_readme_are_jaxs():
    """Test that the README states JAX's default timeouts, in seconds."""
    [section] = re.findall(r"(?s)^## By hand\n(.+?)(?=^## )", README, re.M)
    named = dict(re.findall(r"`(\w+)=\d+` \(instead of (\d+)\)", section))
    known = inspect.signature(jax.distributed.initialize).parameters
    assert len(named) == 2 and {name: str(known[name].default) for name in named} == named


def test_each_process_reads_its_own_rows(monkeypatch):
    """Test the rows that each of 4 processes reads per step: 16 of a batch's 64 rows.

    In step 2, for example, process 3 reads rows 2 * 64 + 3 * 16 = 176 to 191.
    """
    read = []
    monkeypatch.setattr(train, "BATCH", 64)
    monkeypatch.setattr(train, "join", lambda *_: None)
    monkeypatch.setattr(train, "check_rows", lambda mine: "")  # the check would wait for the three other processes
    monkeypatch.setattr(jax, "process_count", lambda: 4)
    monkeypatch.setattr(jax, "process_index", lambda: 3)
    original = train.read

    def watched(rows):
        read.append((rows[0], rows[-1]))
        return original(range(64))  # the test's only process has all devices, so it must provide all rows

    monkeypatch.setattr(train, "read", watched)
    train.main(["--steps", "3"])
    assert read == [(48, 63), (112, 127), (176, 191)]


def test_two_processes_that_read_the_same_rows_are_refused(monkeypatch):
    monkeypatch.setattr(train.multihost_utils, "process_allgather", lambda mine: np.stack([mine, mine]))
    with pytest.raises(AssertionError, match="128 rows were read, 64 different"):
        train.check_rows(train.read(range(64))[0])


@pytest.mark.parametrize("given", ["--processes 2", "--processes 2 --id 1", "--coordinator localhost:5000 --id 0"])
def test_incomplete_cluster_arguments_are_refused(given, capsys):
    with pytest.raises(SystemExit):
        train.main(given.split())
    assert "by hand takes all three: --coordinator, --processes and --id" in capsys.readouterr().err


def test_an_indivisible_batch_is_refused(monkeypatch):
    monkeypatch.setattr(train, "join", lambda *_: None)
    monkeypatch.setattr(train, "BATCH", 100)
    with pytest.raises(SystemExit, match="8 devices cannot split a batch of 100 rows evenly: change BATCH"):
        train.main([])


def test_a_cluster_error_does_not_start_a_single_process(monkeypatch):
    def fail():
        raise ValueError("Number of processes must be defined.")

    monkeypatch.setattr(jax.distributed, "initialize", fail)
    with pytest.raises(ValueError, match="Number of processes"):
        train.join(None, None, None)


needs_slurm = pytest.mark.skipif(
    bool(slurm.missing()), reason=f"{', '.join(slurm.missing())} not installed: apt-get install slurm-wlm munge"
)


def slurm_output(slurm: dict[str, str], *command: str, **options) -> str:
    """Return the output of a Slurm command."""
    return subprocess.run(
        command, env=slurm, capture_output=True, text=True, check=True, timeout=TIME, **options
    ).stdout


def state(slurm: dict[str, str], job: str) -> str:
    """Return Slurm's name for a job's state, such as PENDING, RUNNING, COMPLETED or FAILED."""
    return re.search(r"JobState=(\S+)", slurm_output(slurm, "scontrol", "show", "job", job))[1]


@needs_slurm
def test_slurm_starts_the_script_unchanged(tmp_path):
    out = tmp_path / "train.out"
    with slurm.one_node() as cluster:
        folder = Path(cluster["SLURM_CONF"]).parent
        cluster = {**clean_environment(4), "SLURM_CONF": cluster["SLURM_CONF"]}
        # sbatch --wait would poll only every 32 seconds.
        job = slurm_output(cluster, "sbatch", "--parsable", f"--output={out}", "slurm.sbatch", cwd=EXAMPLES).strip()
        ended = lambda: state(cluster, job) not in ("PENDING", "RUNNING", "COMPLETING")  # noqa: E731
        slurm.wait_for(ended, "running the job", folder, TIME)
        log = out.read_text()
        assert state(cluster, job) == "COMPLETED", log
    assert "processes: 2, cpu devices: 8\n" in log
    np.testing.assert_allclose(losses(log), expected(), rtol=0, atol=1e-12)
    assert not slurm.left_over(str(folder)) and not folder.exists()
