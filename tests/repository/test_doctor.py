"""Test the setup check: the advice for each simulated fault, and the trial of JAX in real processes."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import sys
from urllib.error import HTTPError, URLError

import pytest

from tools.lessons import notebooks
from tools.reader import doctor
from utils.devices import OLDEST_JAX

GOOD = "python 3 12 4\nmissing\njax 0.10.2\ndevices 8 CPU devices (emulated) · jax 0.10.2\nsum 28.0\n"


def trial(printed: str = GOOD, status: int | None = 0, last: str = "no message") -> doctor.Trial:
    """Return the result of a trial, by default of one without faults."""
    return doctor.Trial("/here/python", printed, status, last)


@pytest.fixture
def pretend(monkeypatch):
    """Return a function that simulates a machine with only the faults passed to the function."""

    def machine(trial_result: doctor.Trial | None = None, memory=8.0, disk=50.0, silent=None):
        monkeypatch.setattr(doctor, "run_trial", lambda: trial_result or trial())
        monkeypatch.setattr(doctor, "free_memory", lambda: memory)
        monkeypatch.setattr(doctor, "free_disk", lambda: disk)
        monkeypatch.setattr(doctor, "find_unreachable", lambda: silent or {})

    return machine


def test_a_machine_without_faults(pretend, capsys):
    pretend()
    assert doctor.check_setup()
    lines = capsys.readouterr().out.splitlines()
    checks = ["machine", "Python", "JAX", "devices", "memory", "disk", "network"]
    assert [line.split()[:2] for line in lines[:-1]] == [[thing, "OK"] for thing in checks]
    assert lines[-1] == "Ready."


NO_JAX = "python 3 12 4\nmissing optax flax\n"
OLD_JAX = "python 3 12 4\nmissing\njax {}\n"
LATE = r"no answer within \d+ seconds"
FAULTS = {  # the simulated fault, the check that fails, its result and its advice
    "Python too old": (trial("python 3 8 10\nmissing\n", 1, "ModuleNotFoundError: No module named 'jax'"), "Python", r"3\.8\.10, but the course needs 3\.11 or newer",
                       r"Install Python 3\.13 from python\.org .* make PYTHON=python3\.13 lab, or open the lesson in Colab"),
    "no JAX": (trial(NO_JAX, 1, "ModuleNotFoundError: No module named 'jax'"), "JAX", "not installed in /here/python", "Type make lab in the course's folder"),
    "JAX broken": (trial(NO_JAX, 1, "ImportError: libstdc++.so.6: version not found"), "JAX", "can't be imported: the trial ended with status 1: ImportError: libstdc",
                   "/here/python -m pip install --force-reinstall jax jaxlib"),
    "import never ends": (trial(NO_JAX, None), "JAX", LATE, "Reinstall it"),
    "JAX too old": (trial(OLD_JAX.format("0.6.2"), 3), "JAX", rf"0\.6\.2, but the course needs {re.escape(OLDEST_JAX)} or newer",
                    rf'pip install --upgrade "jax>={re.escape(OLDEST_JAX)}"; then restart the kernel'),
    "a library is missing": (trial(GOOD.replace("missing", "missing optax sklearn")), "libraries", "missing: optax sklearn", "make lab"),
    "devices refused": (trial(OLD_JAX.format("0.10.2") + "setup JAX_PLATFORMS=gpu leaves the CPU out. Unset it.\n", 3), "devices", "eight devices don't start",
                        r"JAX_PLATFORMS=gpu leaves the CPU out\. Unset it"),
    "devices crash": (trial(OLD_JAX.format("0.10.2"), -11, "Segmentation fault"), "devices", "the trial ended with signal 11: Segmentation fault", "Close other programs and try again"),
    "devices hang": (trial(GOOD.split("sum")[0], None), "devices", LATE, "open the lesson in Colab"),
    "devices add up wrong": (trial(GOOD.replace("28", "27")), "devices", "don't work together", "try again"),
    "little memory": ({"memory": 0.6}, "memory", r"0\.6 GB free, but lesson 06 needs 1 GB", "Close other programs"),
    "little disk": ({"disk": 0.1}, "disk", r"0\.1 GB free, but lesson 09 writes traces of up to", "pip cache purge"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_reported_with_advice(pretend, capsys, fault):
    pretended, what, problem, do = FAULTS[fault]
    pretend(**(pretended if isinstance(pretended, dict) else {"trial_result": pretended}))
    assert not doctor.check_setup()
    printed = capsys.readouterr().out
    assert re.search(rf"^{what} +STOP +.*{problem}.*\n +.*{do}", printed, re.M), printed
    assert re.search(r"^Not ready: fix the \d problems? marked STOP\.$", printed, re.M)


def test_without_downloads_a_missing_network_is_only_a_note(pretend, capsys):
    silent = {"the course's repository": "timed out", "the package index": "refused"}
    pretend(silent=silent)
    assert doctor.check_setup()
    assert re.search(
        r"^network +NOTE +.*repository doesn't respond \(timed out\).*\n +.*HTTPS_PROXY", capsys.readouterr().out, re.M
    )
    pretend(trial_result=trial(NO_JAX, 1, "No module named 'jax'"), silent=silent)
    assert not doctor.check_setup()
    printed = capsys.readouterr().out
    assert re.search(r"^network +STOP ", printed, re.M)
    assert printed.endswith("Not ready: fix the 2 problems marked STOP.\n")


def test_an_installation_needs_more_disk_space(pretend, capsys):
    pretend(trial_result=trial(NO_JAX, 1, "No module named 'jax'"), disk=1.0)
    doctor.check_setup()
    assert re.search(r"^disk +STOP +1\.0 GB free, but the installation takes", capsys.readouterr().out, re.M)
    pretend(disk=1.0)
    assert doctor.check_setup()


def test_scarce_or_unknown_memory_is_a_note():
    assert [doctor.check_memory(free).status for free in (None, 0.5, 1.5, 2.5)] == ["NOTE", "STOP", "NOTE", "OK"]


def test_environment_variables_are_reported(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--no_such_flag")
    [_, line] = doctor.check_jax(trial("python 3 12 4\nmissing\njax 0.10.2\n", -6, "Unknown flag in XLA_FLAGS"))
    assert "unset XLA_FLAGS (now --no_such_flag)" in line.advice


@pytest.mark.parametrize(
    ("where", "says"), [("Colab", "Run in a cell: !"), ("Kaggle", "Run in a cell: !"), ("", "make lab")]
)
def test_advice_depends_on_the_hosting_service(monkeypatch, where, says):
    monkeypatch.setattr(doctor, "hosting_service", lambda: where)
    [line] = doctor.check_jax(trial(NO_JAX, 1, "No module named 'jax'"))
    assert line.advice.startswith(says) or says in line.advice
    network = doctor.check_network({"the course's repository": "timed out"}, installed=True)
    assert ("Session options > Internet" in network.advice) == (where == "Kaggle")
    assert ("open the lesson in Colab" in doctor.alternative_advice()) == (where != "Colab")
    [_, line, _] = doctor.check_jax(trial(GOOD.replace("missing", "missing optax sklearn")))
    assert ("!/here/python -m pip install optax scikit-learn; then" in line.advice) == bool(where)


def test_an_intel_mac_is_sent_to_a_hosting_service(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(doctor.platform, "machine", lambda: "x86_64")
    [line] = doctor.check_jax(trial(NO_JAX, 1, "No module named 'jax'"))
    assert line.advice.startswith("JAX has no packages for Macs with an Intel chip: open the lesson in Colab")


def test_an_installed_course_needs_no_package_index():
    silent = {"the course's repository": "timed out"}
    assert "nothing needs to be downloaded now" in doctor.check_network(silent, installed=True).result
    assert "the installation doesn't need it" in doctor.check_network(silent, installed=False).result


def test_hosting_services_are_recognised(monkeypatch):
    assert doctor.hosting_service() == ""
    monkeypatch.setenv("KAGGLE_KERNEL_RUN_TYPE", "Interactive")
    assert doctor.hosting_service() == "Kaggle"
    monkeypatch.setitem(sys.modules, "google.colab", os)
    assert doctor.hosting_service() == "Colab"


# The trial in real processes


def test_a_locale_without_utf_8_is_no_fault(monkeypatch):
    for name, value in {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}.items():
        monkeypatch.setenv(name, value)
    assert doctor.run_trial_process(sys.executable).status == 0


def test_the_trial_adds_up_on_eight_devices():
    trial_result = doctor.run_trial_process(sys.executable)
    assert (trial_result.status, trial_result.value_of("sum"), trial_result.value_of("setup")) == (0, "28.0", None), (
        trial_result
    )
    assert [line.status for line in doctor.check_jax(trial_result)] == ["OK"] * 2


def test_the_trial_uses_the_kernels_running_devices(monkeypatch):
    monkeypatch.setattr(doctor, "run_trial_process", None)  # a second process couldn't use a TPU that this process uses
    trial_result = doctor.run_trial()
    assert (trial_result.python, trial_result.value_of("sum")) == (sys.executable, "28.0")
    assert [line.status for line in doctor.check_jax(trial_result)] == ["OK"] * 2


def test_without_running_devices_the_trial_starts_a_process(monkeypatch):
    monkeypatch.setattr(doctor.devices, "_started", [])
    monkeypatch.setattr(doctor, "run_trial_process", lambda python: python)
    assert doctor.run_trial() == doctor.course_python()


def test_a_hanging_trial_is_killed(monkeypatch):
    monkeypatch.setattr(doctor, "TRIAL_PROGRAM", "print('jax 0.10.2', flush=True); import time; time.sleep(60)")
    trial_result = doctor.run_trial_process(sys.executable, timeout=2)
    assert (trial_result.status, trial_result.value_of("jax")) == (None, "0.10.2")


def test_a_python_without_jax_is_reported(tmp_path):
    bare = tmp_path / "python"  # runs Python without site-packages
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -E "$@"\n')
    bare.chmod(0o755)
    [line] = doctor.check_jax(doctor.run_trial_process(str(bare)))
    assert (line.status, line.result) == ("STOP", f"not installed in {bare}")


def test_an_old_python_can_parse_the_module():
    for name in ("utils/devices", *(f"tools/reader/{name}" for name in ("__init__", "environment", "doctor"))):
        source = (notebooks.ROOT / f"{name}.py").read_text(encoding="utf-8")
        ast.parse(source, feature_version=(3, 8))
    with pytest.raises(SyntaxError):  # make sure that feature_version has an effect
        ast.parse("match 1:\n    case 1: pass", feature_version=(3, 8))


# The network


def test_unreachable_sources_are_reported(monkeypatch):
    def answer(request, timeout):
        if "github" in request.full_url:
            raise URLError("Name or service not known")
        raise HTTPError(request.full_url, 403, "Forbidden", None, None)  # a refusal means that the server is reachable

    monkeypatch.setattr(doctor.urllib.request, "urlopen", answer)
    assert doctor.find_unreachable() == {"the course's repository": "Name or service not known"}


def test_a_missing_repository_differs_from_a_missing_network(monkeypatch):
    def answer(request, timeout):
        raise HTTPError(request.full_url, 404, "Not Found", None, None)

    monkeypatch.setattr(doctor.urllib.request, "urlopen", answer)
    assert set(doctor.find_unreachable().values()) == {"page not found"}


def test_download_urls_are_the_courses_and_pips(monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", "https://mirror.example/simple/")
    name, _ = notebooks.repository()
    assert list(doctor.download_urls().values()) == [f"https://github.com/{name}", "https://mirror.example/simple/jax/"]


def test_it_looks_for_the_required_packages():
    assert {"flax", "matplotlib", "optax", "rich", "sklearn", "tqdm"} <= set(doctor._libraries())
    for name in doctor._libraries():
        assert importlib.util.find_spec(name), (
            f"{name} is imported under a different name: add it to IMPORTED_AS in tools/reader/doctor.py"
        )


def test_the_commands_exit_status():
    code = "import runpy, utils.devices; utils.devices.OLDEST_JAX = '99.0'\n"
    code += "runpy.run_module('tools.reader.doctor', run_name='__main__')"
    run = subprocess.run([sys.executable, "-c", code], cwd=notebooks.ROOT, capture_output=True, text=True)
    assert run.returncode == 1, run.stdout + run.stderr
    assert re.search(r"^JAX +STOP .* needs 99\.0 or newer", run.stdout, re.M)
