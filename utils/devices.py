"""Start eight devices on any machine: its accelerators if there are eight, otherwise emulated CPU devices."""

from __future__ import annotations

import contextlib
import glob
import importlib.metadata
import importlib.util
import os
import re
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jaxlib._jax import Device  # this is jax.Device, but type checkers take that name for a variable

OLDEST_JAX = "0.7.2"  # the same as in pyproject.toml
_started: list[Device] = []


class SetupError(RuntimeError):
    """An error that stops the setup. The message tells readers what to do; a notebook shows it without a traceback."""

    def _render_traceback_(self) -> list[str]:  # IPython calls this
        return [f"SetupError: {self}"]


def start_devices(count: int = 8) -> list[Device]:
    """Start JAX with `count` devices (1 to 64), print which ones they are, and return them.

    If an accelerator platform has at least `count` devices, use those. Otherwise emulate the devices on the CPU: new
    arrays go to the emulated devices, while any accelerators remain available through `jax.devices()`. In either case,
    make child processes use emulated devices, because no other process can use an accelerator that this one has opened.
    A second call with the same `count` changes nothing.

    Raises ValueError if `count` isn't an integer from 1 to 64, and SetupError if JAX is missing, too old, or already
    running with fewer devices.
    """
    if type(count) is not int or not 1 <= count <= 64:
        raise ValueError(f"the number of devices must be a whole number from 1 to 64, not {count!r}")
    jax = _import_jax()
    requested = _requested_elsewhere()
    _avoid_probing_for_hardware(jax)
    # This fails if JAX is already running. The check below then finds out whether there are enough devices.
    with contextlib.suppress(RuntimeError):
        jax.config.update("jax_num_cpu_devices", count)

    chosen = available = jax.devices()
    if len(available) < count or available[0].platform == "cpu":
        try:
            chosen = jax.devices("cpu")
        except RuntimeError as error:
            platforms = jax.config.values["jax_platforms"]
            raise SetupError(
                f"JAX_PLATFORMS={platforms} leaves the CPU out, and {available[0].platform} has "
                f"{len(available)} of {count} devices. Unset it, restart the kernel, and run the setup cell first."
            ) from error
        if len(chosen) < count:
            raise SetupError(
                f"JAX is already running with {len(chosen)} CPU device{'s' * (len(chosen) > 1)}; it is too late for "
                f"{count}. Restart the kernel and run the setup cell before any other."
            )
        if available[0].platform != "cpu":
            jax.config.update("jax_default_device", chosen[0])
    _started[:] = chosen[:count]
    os.environ["JAX_PLATFORMS"], os.environ["JAX_NUM_CPU_DEVICES"] = "cpu", str(count)  # for child processes
    print(*_describe_machine(available, chosen, count, jax.__version__), sep="\n")
    for name, number in requested.items():
        if number != count:
            print(f"{name} asks for {number} CPU devices; the course uses {count}.")
    return list(_started)


def _describe_machine(available: list[Device], chosen: list[Device], count: int, version: str) -> list[str]:
    """Describe in at most three lines which devices the lessons use, and what that means for any accelerators."""
    kind = f"{available[0].platform.upper()}{f' ({available[0].device_kind})' * (available[0].platform != 'cpu')}"
    if available[0].platform == "cpu":
        return [f"{count} CPU device{'s' * (count > 1)} (emulated) · jax {version}"]
    if chosen[0].platform != "cpu":
        return [
            f"{count} {kind} device{'s' * (count > 1)} · jax {version}",
            f"The lessons' scripts run on {count} emulated CPU devices, because this kernel keeps the "
            f"{available[0].platform.upper()} to itself.",
        ]
    return [
        f"{count} CPU device{'s' * (count > 1)} (emulated) · jax {version}",
        f"This machine has {len(available)} {kind}, and the lessons need {count} devices, so they emulate {count} on "
        "the CPU: the bytes and FLOPs that you see are exact, but the times say nothing about real devices.",
        f"Lesson 01 times the {available[0].platform.upper()}. The lessons' scripts use it if you run them in a "
        "terminal after shutting down this kernel.",
    ]


def started_devices() -> list[Device]:
    """Return the devices that `start_devices` last returned. Raises SetupError if it hasn't been called."""
    if not _started:
        raise SetupError("no devices yet: run the setup cell at the top of the notebook first.")
    return list(_started)


def release_numbers(release: str) -> tuple[int, ...]:
    """Return the first three numbers of a release, such as (0, 10, 2) for '0.10.2', to compare it with others."""
    return tuple(int(number) for number in re.findall(r"\d+", release)[:3])


def _import_jax():
    try:
        import jax
    except ModuleNotFoundError as error:
        if error.name != "jax":
            raise  # JAX is installed but broken, and its own message explains why
        raise SetupError(
            f'this kernel has no JAX. Install it with: {sys.executable} -m pip install "jax>={OLDEST_JAX}"'
        ) from error
    if release_numbers(jax.__version__) < release_numbers(OLDEST_JAX):
        raise SetupError(
            f"this course needs JAX {OLDEST_JAX} or newer, and this kernel has {jax.__version__}. Upgrade it, then "
            "restart."
        )
    return jax


def _requested_elsewhere() -> dict[str, int]:
    """Return the number of CPU devices that each environment variable requests. JAX's own option overrides these."""
    flag = re.search(r"xla_force_host_platform_device_count=(\d+)", os.environ.get("XLA_FLAGS", ""))
    variable = os.environ.get("JAX_NUM_CPU_DEVICES", "")
    requested = {"XLA_FLAGS": int(flag[1])} if flag else {}
    return requested | ({"JAX_NUM_CPU_DEVICES": int(variable)} if variable.isdigit() else {})


def _avoid_probing_for_hardware(jax) -> None:
    """Restrict JAX to the CPU on a machine without accelerators.

    Otherwise JAX would probe for hardware: without a TPU, libtpu takes a lock, pauses and prints a page of warnings;
    a GPU without its plugin causes a warning. If JAX has detected a TPU chip, it has already set `jax_platforms`. If a
    plugin (such as a GPU's) is installed, leave the choice to JAX, because naming platforms turns a plugin without
    hardware into an error.
    """
    chip = importlib.util.find_spec("libtpu") and (glob.glob("/dev/accel*") or glob.glob("/dev/vfio/[0-9]*"))
    plugin = importlib.util.find_spec("jax_plugins") or importlib.metadata.entry_points(group="jax_plugins")
    if not (jax.config.jax_platforms or chip or plugin):
        jax.config.update("jax_platforms", "cpu")
