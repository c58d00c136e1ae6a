"""Configure pytest, provide fixtures, such as eight devices in the tests' own process, and execute lessons.

Two pytest-xdist workers run the tests. Each worker is pinned to its own core, together with its kernels. `--passes`
selects how lessons are executed (see tests/README.md).
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import matplotlib
import pytest
from _pytest.junitxml import xml_key
from nbclient.exceptions import DeadKernelError
from nbformat import NotebookNode
from nbmake.nb_run import NotebookRun

from tests import lesson_lint
from tools.lessons import notebooks

# Kernels must start as a reader's kernel does, although the tests' own process always has eight devices.
for variable in ("JAX_PLATFORMS", "XLA_FLAGS", "JAX_NUM_CPU_DEVICES", "KAGGLE_KERNEL_RUN_TYPE", "MPLBACKEND"):
    os.environ.pop(variable, None)
# Ignore the user's settings, and any helpers cached in the user's home.
os.environ.update(HOME=tempfile.mkdtemp(prefix="home-"), GIT_CONFIG_GLOBAL=os.devnull, GIT_CONFIG_NOSYSTEM="1")
os.environ["COURSE_PROGRESS"] = "off"  # don't record the tests' answers as the user's progress
# In kernels, show every deprecation warning that a cell or a helper causes, however often it occurs. Include warnings
# from JAX's modules, because some of them point to a line in JAX itself, and JAX's own tests run without warnings.
COURSE_MODULES = rf"(__main__|{'|'.join(notebooks.IMPORTED)}|jax|jaxlib)(\.|$)"
startup = Path(tempfile.mkdtemp(prefix="ipython-"), "profile_default", "startup", "deprecations.py")
startup.parent.mkdir(parents=True)
startup.write_text(
    "\n".join(
        f"__import__('warnings').filterwarnings('always', category={category}, module=r'{COURSE_MODULES}')"
        for category in ("DeprecationWarning", "PendingDeprecationWarning", "FutureWarning")
    )
)
os.environ["IPYTHONDIR"] = str(startup.parents[2])
CHIP = Path(__file__).with_name("chip")  # contains a JAX plugin
APPENDIX = "90"  # the lesson that shows deprecated APIs on purpose
# must be read before a worker is pinned to its core
ALL_CORES = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else {0}
matplotlib.use("agg")
collect_ignore = ["site"]  # make test-site runs these tests


LONGEST_FIRST = ("long", "doubled", "plain")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--passes", choices=["doubled", "plain", "all"], default="doubled", help="run each cell twice, once, or both"
    )
    parser.addoption(
        "--chip", action="store_true", help="execute lessons on a simulated chip that only one process can use"
    )


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    # The weekly run's issue shows these versions. They're added here because record_testsuite_property doesn't work
    # with xdist.
    if report := config.stash.get(xml_key, None):
        for name, version in (("jax", importlib.metadata.version("jax")), ("Python", platform.python_version())):
            report.add_global_property(name, version)
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    if "PYTEST_XDIST_WORKER" in os.environ and hasattr(os, "sched_setaffinity"):
        cores = sorted(ALL_CORES)
        os.sched_setaffinity(0, {cores[int(worker) % len(cores)]})


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep only the selected passes, and start the longest tests first, so that none of them delays the run's end."""
    passes = config.getoption("passes")
    other = {"doubled": "plain", "plain": "doubled"}.get(passes, "")
    items[:] = [item for item in items if not item.get_closest_marker(other)]
    items.sort(key=lambda item: next((i for i, mark in enumerate(LONGEST_FIRST) if item.get_closest_marker(mark)), 9))


@pytest.fixture(scope="session", autouse=True)
def devices() -> list:
    """Start eight CPU devices in the tests' own process, and return them."""
    from utils.devices import start_devices

    started = start_devices(8)
    for variable in ("JAX_PLATFORMS", "JAX_NUM_CPU_DEVICES"):  # kernels must start as a reader's kernel does
        os.environ.pop(variable, None)
    return started


@pytest.fixture
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Cache the programs that JAX compiles in this process, in a folder that belongs to this test run.

    Use this fixture for tests of exercises, which compare values, shardings and counts. Don't use it for lessons,
    which must run as they do for a reader, or for tests that count compilations.
    """
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    folder = tmp_path_factory.getbasetemp() / "compiled"
    wanted = {
        "jax_compilation_cache_dir": str(folder),
        "jax_persistent_cache_min_compile_time_secs": 0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }
    before = {name: getattr(jax.config, name) for name in wanted}
    for settings in (wanted, before):
        for name, value in settings.items():
            jax.config.update(name, value)
        compilation_cache.reset_cache()
        if settings is wanted:
            yield


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Commit the checkout to a repository, and return environment variables that make git fetch the course from it."""
    folder = tmp_path_factory.mktemp("served")
    git = ["git", "-c", "user.name=test", "-c", "user.email=test@example.invalid", "-C", str(folder)]
    listing = ["git", "-C", str(notebooks.ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run([*listing, *notebooks.PACKAGES], check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        source, target = notebooks.ROOT / name, folder / name
        if source.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    name, revision = notebooks.repository()
    for step in (["init", "-q", "-b", revision], ["add", "."], ["commit", "-qm", "The checkout"], ["tag", "v0.1"]):
        subprocess.run([*git, *step], check=True, capture_output=True)
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{folder.as_uri()}.insteadOf",
        "GIT_CONFIG_VALUE_0": f"https://github.com/{name}",
    }


@pytest.fixture(scope="session", autouse=True)
def fonts() -> None:
    """Build matplotlib's font cache before any lesson runs, because building it prints to stderr."""
    subprocess.run([sys.executable, "-c", "import matplotlib.font_manager"], check=True, capture_output=True)


def execute_notebook(path: Path) -> NotebookNode:
    """Execute a notebook with nbmake, in its folder and in a kernel of this environment, and return the result.

    If a cell raises an error, the test fails with the cell's name and message.
    """
    with pytest.MonkeyPatch.context() as patch:
        if notebooks.number(path) == APPENDIX:
            patch.delenv("IPYTHONDIR")
        try:
            result = NotebookRun(path, default_timeout=300).execute()
        except DeadKernelError as error:  # nbmake doesn't catch this error, so get the notebook from its frame
            cells = error.__traceback__.tb_next.tb_frame.f_locals["nb"].cells
            begun = [cell.id for cell in cells if "execution" in cell.metadata]
            pytest.fail(f"{begun[-1]}: {error}", pytrace=False)
    if result.error is not None:
        cell = result.nb.cells[result.error.failing_cell_index]
        messages = [text for kind, text in lesson_lint.output_texts(cell) if kind == "error"] or [result.error.summary]
        pytest.fail(f"{cell.id}: {messages[0].splitlines()[0]}\n\n{result.error.trace}", pytrace=False)
    return result.nb


@pytest.fixture
def chip(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With --chip, give the lesson's kernel a chip that no other process can use at the same time."""
    if request.config.getoption("chip"):
        monkeypatch.setenv("PYTHONPATH", str(CHIP))
        monkeypatch.setenv("CHIP_LOCK", str(tmp_path / "chip.lock"))


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return the notebooks folder in a temporary folder that's laid out like a clone."""
    for package in notebooks.PACKAGES:
        (tmp_path / package).symlink_to(notebooks.ROOT / package)
    (tmp_path / "notebooks").mkdir()
    return tmp_path / "notebooks"


@contextlib.contextmanager
def pin_to_cores(chosen: set[int]) -> Iterator[None]:
    """Within the block, pin this process and its child processes to these cores, if the system supports pinning."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, chosen)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextlib.contextmanager
def double_precision() -> Iterator[None]:
    """Enable float64 within the block, as some lessons do."""
    import jax

    jax.config.update("jax_enable_x64", True)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", False)


@pytest.fixture
def python(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess]:
    """Return a function that runs Python code in a new process, by default in a temporary folder.

    Its keyword arguments, except for `cwd`, become environment variables.
    """

    def run(code: str, *, cwd: Path = tmp_path, **environment: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, "-c", code],
            cwd=cwd,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=180,
        )

    return run
