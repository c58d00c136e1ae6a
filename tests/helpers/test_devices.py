"""Test starting the devices: their number and platform, the lines that are printed, and the advice in errors."""

from __future__ import annotations

import importlib.util
import re

import pytest

from utils import devices

OLDEST = re.escape(devices.OLDEST_JAX)
LINE = re.compile(r"8 CPU devices \(emulated\) · jax \d+\.\d+\.\S+\n")
CLONE = "import sys; sys.path.insert(0, {root!r})\n"


@pytest.fixture
def fresh(python):
    """Return a function that runs code in a new process, which can import the course's utils."""
    from tools.lessons.notebooks import ROOT

    return lambda code, **environment: python(CLONE.format(root=str(ROOT)) + code, **environment)


START = "from utils.devices import start_devices; start_devices()\n"


def test_one_line_is_printed_and_a_second_call_is_harmless(fresh):
    run = fresh(
        "import utils, utils.devices, sys; assert 'jax' not in sys.modules\n"
        + START
        + "first = start_devices(); assert start_devices() == first and len(first) == 8"
    )
    assert run.returncode == 0 and run.stderr == "", run.stderr
    [line] = set(run.stdout.splitlines(True))
    assert LINE.fullmatch(line)


@pytest.mark.parametrize("count", [1, 64])
def test_other_numbers_of_devices(fresh, count):
    code = f"from utils.devices import start_devices; import jax; found = start_devices({count})\n"
    run = fresh(code + f"assert len(found) == len(jax.devices()) == {count}")
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith(f"{count} CPU device{'s' if count > 1 else ''} (emulated)")


@pytest.mark.parametrize("count", [0, 65, -8, 2.5, "8", None, True])
def test_invalid_numbers_of_devices(count):
    with pytest.raises(ValueError, match="from 1 to 64"):
        devices.start_devices(count)


def test_starting_too_late_explains_what_to_do(fresh):
    run = fresh("import jax; jax.devices()\n" + START, JAX_PLATFORMS="cpu")
    assert run.returncode == 1
    assert "already running with 1 CPU device" in run.stderr
    assert "Restart the kernel and run the setup cell" in run.stderr


def test_eight_of_more_running_devices_are_used(fresh):
    code = "import jax; jax.config.update('jax_num_cpu_devices', 16); jax.devices()\n"
    run = fresh(code + START + "assert [d.id for d in start_devices()] == list(range(8))")
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize(
    "environment",
    [{"XLA_FLAGS": "--xla_force_host_platform_device_count=4"}, {"JAX_NUM_CPU_DEVICES": "2"}],
    ids=["XLA_FLAGS", "JAX_NUM_CPU_DEVICES"],
)
def test_the_environment_requests_a_different_number(fresh, environment):
    run = fresh(START + "import jax; assert len(jax.devices('cpu')) == 8", **environment)
    assert run.returncode == 0, run.stderr
    [(name, value)] = environment.items()
    number = value.split("=")[-1]
    assert run.stdout.splitlines()[1] == f"{name} asks for {number} CPU devices; the course uses 8."


def test_libtpu_without_a_tpu_starts_quietly_and_quickly(fresh):
    if not importlib.util.find_spec("libtpu"):
        pytest.skip("libtpu is not installed here")
    code = "import time, jax; start = time.perf_counter()\n" + START + "print(time.perf_counter() - start)"
    run = fresh(code)
    assert run.stderr == ""
    assert float(run.stdout.splitlines()[-1]) < 5


def test_a_gpu_without_its_plugin_is_quiet(fresh):
    run = fresh("import jax._src.hardware_utils as hardware; hardware.has_visible_nvidia_gpu = lambda: True\n" + START)
    assert LINE.fullmatch(run.stdout)
    assert run.stderr == ""


# Simulate accelerators, for code that only asks JAX for its devices.
PRETEND = """
import jax
from types import SimpleNamespace as Object
def pretend(platform, count):
    chips = [Object(platform=platform, id=i, device_kind="pretended") for i in range(count)]
    real, updates = jax.devices, []
    jax.devices = lambda name=None: chips if name in (None, platform) else real(name)
    update = jax.config.update
    jax.config.update = lambda *a: (updates.append(a), a[0] == "jax_num_cpu_devices" and update(*a))
    return chips, updates
from utils.devices import start_devices
"""


def test_eight_of_more_chips_are_used(fresh):
    run = fresh(PRETEND + "chips, _ = pretend('tpu', 10); assert start_devices() == chips[:8]")
    assert run.returncode == 0, run.stderr
    first, second = run.stdout.splitlines()
    assert first.startswith("8 TPU (pretended) devices · jax ")
    assert second == (
        "The lessons' scripts run on 8 emulated CPU devices, because this kernel keeps the TPU to itself."
    )


def test_with_a_single_chip_new_arrays_are_stored_on_emulated_devices(fresh):
    code = """
chips, updates = pretend('gpu', 1)
found = start_devices()
assert [d.platform for d in found] == ['cpu'] * 8
assert ('jax_default_device', found[0]) in updates
assert jax.devices() == chips  # JAX still lists the GPU
"""
    run = fresh(PRETEND + code)
    assert run.returncode == 0, run.stderr
    first, second, third = run.stdout.splitlines()
    assert LINE.match(first + "\n")
    assert second.startswith("This machine has 1 GPU (pretended), and the lessons need 8 devices, so they emulate 8")
    assert second.endswith("bytes and FLOPs that you see are exact, but the times say nothing about real devices.")
    assert third.startswith("Lesson 01 times the GPU. The lessons' scripts use it if you run them in a terminal")


@pytest.mark.parametrize("platform, count", [("cpu", 0), ("gpu", 1), ("tpu", 10)])
def test_child_processes_always_use_emulated_devices(fresh, platform, count):
    code = PRETEND + (f"pretend({platform!r}, {count})\n" if count else "") + "start_devices()\n"
    run = fresh(code + "import os; print(os.environ['JAX_PLATFORMS'], os.environ['JAX_NUM_CPU_DEVICES'])")
    assert run.stdout.splitlines()[-1] == "cpu 8", run.stderr


def test_jax_platforms_without_cpu(fresh):
    code = """
def devices(name=None):
    if name == "cpu":
        raise RuntimeError("Unknown backend cpu")
    return [Object(platform="gpu", id=0, device_kind="pretended")]
jax.devices = devices
start_devices()
"""
    run = fresh(PRETEND + code)
    assert run.returncode == 1
    assert "leaves the CPU out" in run.stderr and "restart the kernel" in run.stderr


def test_missing_or_old_jax(monkeypatch):
    import builtins

    import jax

    with monkeypatch.context() as patch:
        patch.setattr(jax, "__version__", "0.6.2")
        with pytest.raises(devices.SetupError, match=rf"{OLDEST} or newer, and this kernel has 0\.6\.2"):
            devices.start_devices()
    real = builtins.__import__

    def without_jax(name, *args, **kwargs):
        if name == "jax":
            raise ModuleNotFoundError("No module named 'jax'", name="jax")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_jax)
    with pytest.raises(devices.SetupError, match=rf"pip install \"jax>={OLDEST}\""):
        devices.start_devices()


def test_devices_before_setup(monkeypatch):
    monkeypatch.setattr(devices, "_started", [])
    with pytest.raises(devices.SetupError, match="run the setup cell"):
        devices.started_devices()


def test_releases_are_compared_by_their_first_three_numbers():
    assert devices.release_numbers("0.12.0.1") == (0, 12, 0)
    assert devices.release_numbers("0.9.2") < devices.release_numbers("0.10") < devices.release_numbers("0.10.2")
    assert devices.release_numbers("0.12.1.dev20261120") == (0, 12, 1)
