"""Eight devices, whatever the machine: eight accelerators where there are eight, else eight emulated CPU devices."""

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
    import jax

OLDEST_JAX = "0.7.2"  # as in pyproject.toml
_started: list[jax.Device] = []


class SetupError(RuntimeError):
    """Setup cannot go on; its message says what to do. A notebook shows the message alone, without a traceback."""

    def _render_traceback_(self) -> list[str]:  # IPython asks for this
        return [f"SetupError: {self}"]


def start_devices(count: int = 8) -> list[jax.Device]:
    """Start JAX with `count` devices (1 to 64), print one line that says which, and return them.

    If an accelerator platform has at least `count` devices, these are used. Otherwise the devices are emulated on the
    CPU, whatever else is in the machine: a single GPU or TPU chip stays reachable through `jax.devices()`, while new
    arrays land on the emulated devices. Calling it again changes nothing.

    Raises ValueError for a count outside 1 to 64, and SetupError where JAX is missing, too old, or already running
    with fewer devices.
    """
    if type(count) is not int or not 1 <= count <= 64:
        raise ValueError(f"the number of devices must be a whole number from 1 to 64, not {count!r}")
    jax = _import_jax()
    asked = _asked_for_elsewhere()
    _stay_on_the_cpu_where_nothing_else_is(jax)
    with contextlib.suppress(RuntimeError):  # JAX is running already; whether it has enough devices is seen below
        jax.config.update("jax_num_cpu_devices", count)

    found = jax.devices()
    if len(found) < count or found[0].platform == "cpu":
        try:
            cpus = jax.devices("cpu")
        except RuntimeError as error:
            raise SetupError(
                f"JAX_PLATFORMS={jax.config.jax_platforms} leaves the CPU out, and {found[0].platform} has "
                f"{len(found)} of {count} devices. Unset it, restart the kernel, and run the setup cell first."
            ) from error
        if len(cpus) < count:
            raise SetupError(
                f"JAX is already running with {len(cpus)} CPU device{'s' * (len(cpus) > 1)}; it is too late for "
                f"{count}. Restart the kernel and run the setup cell before any other."
            )
        if found[0].platform != "cpu":
            jax.config.update("jax_default_device", cpus[0])
        found = cpus
    _started[:] = found[:count]
    kind = "CPU" if found[0].platform == "cpu" else f"{found[0].platform.upper()} ({found[0].device_kind})"
    emulated = " (emulated)" if found[0].platform == "cpu" else ""
    print(f"{count} {kind} device{'s' * (count > 1)}{emulated} · jax {jax.__version__}")
    for name, number in asked.items():
        if number != count:
            print(f"{name} asks for {number} CPU devices; the course uses {count}.")
    return list(_started)


def started_devices() -> list[jax.Device]:
    """The devices that `start_devices` returned last. Raises SetupError where it was not called yet."""
    if not _started:
        raise SetupError("no devices yet: run the setup cell at the top of the notebook first.")
    return list(_started)


def release_numbers(release: str) -> tuple[int, ...]:
    """(0, 10, 2) for '0.10.2': releases are compared by their first three numbers."""
    return tuple(int(number) for number in re.findall(r"\d+", release)[:3])


def _import_jax():
    try:
        import jax
    except ModuleNotFoundError as error:
        if error.name != "jax":
            raise  # JAX is there and broken: its own message says how
        raise SetupError(
            f'this kernel has no JAX. Install it with: {sys.executable} -m pip install "jax>={OLDEST_JAX}"'
        ) from error
    if release_numbers(jax.__version__) < release_numbers(OLDEST_JAX):
        raise SetupError(
            f"this course needs JAX {OLDEST_JAX} or newer, and this kernel has {jax.__version__}. Upgrade it, then "
            "restart."
        )
    return jax


def _asked_for_elsewhere() -> dict[str, int]:
    """Numbers of CPU devices that the environment asks for, by the variable that asks. JAX's option overrules both."""
    flag = re.search(r"xla_force_host_platform_device_count=(\d+)", os.environ.get("XLA_FLAGS", ""))
    variable = os.environ.get("JAX_NUM_CPU_DEVICES", "")
    asked = {"XLA_FLAGS": int(flag[1])} if flag else {}
    return asked | ({"JAX_NUM_CPU_DEVICES": int(variable)} if variable.isdigit() else {})


def _stay_on_the_cpu_where_nothing_else_is(jax) -> None:
    """Say so to JAX, which otherwise looks for hardware: libtpu without a TPU costs a lock, a pause and a page of
    warnings, a GPU without its plugin a warning.

    JAX has set `jax_platforms` by now if it saw a TPU chip. Where a plugin (a GPU's) is installed, nothing is ruled
    out: naming platforms would turn a plugin without its hardware into an error.
    """
    chip = importlib.util.find_spec("libtpu") and (glob.glob("/dev/accel*") or glob.glob("/dev/vfio/[0-9]*"))
    plugin = importlib.util.find_spec("jax_plugins") or importlib.metadata.entry_points(group="jax_plugins")
    if not (jax.config.jax_platforms or chip or plugin):
        jax.config.update("jax_platforms", "cpu")
        os.environ["JAX_PLATFORMS"] = "cpu"  # and to the scripts that a lesson starts
