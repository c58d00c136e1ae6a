"""What a cell or a helper uses and JAX deprecates is a fault, shown or not; the appendix is there to show it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests import checks
from tests.conftest import APPENDIX, execute
from tests.house.test_checks_can_fail import small
from tools.lessons import notebooks

pytestmark = pytest.mark.elsewhere

# Deprecated on every supported JAX. 0.7.2 warns of it as a line of JAX's own, later ones as the line that uses it.
OLD = "jax.jit(lambda x: x, backend='cpu')(1)"
HELPER = f"import jax, warnings\ndef use():\n    {OLD}\ndef warn():\n    warnings.warn('going', FutureWarning)\n"
STRANGER = "import warnings\ndef use():\n    warnings.warn('none of ours', PendingDeprecationWarning)\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A clone with one helper more, and a module that is not the course's."""
    for package in notebooks.PACKAGES:
        shutil.copytree(notebooks.ROOT / package, tmp_path / package)
    (tmp_path / "utils" / "helper.py").write_text(HELPER)
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "stranger.py").write_text(STRANGER)
    return tmp_path / "notebooks"


def faults(path: Path, *sources: str) -> list[str]:
    notebooks.write(small(*sources), path)
    return checks.stderr_faults(execute(path))


def test_a_deprecated_form_is_caught(folder):
    cells = [f"import jax\n{OLD}", "from utils import helper\nhelper.use()", "helper.use()", "helper.warn()"]
    found = faults(folder / "small.ipynb", *cells, "import stranger\nstranger.use()")
    assert [fault.split(":")[0] for fault in found] == ["cell-0", "cell-1", "cell-2", "cell-3"]  # the same line twice
    assert all("DeprecationWarning: backend and device" in fault for fault in found[:3])


def test_the_appendix_may_use_what_it_likes(folder):
    assert faults(folder / f"{APPENDIX}_small.ipynb", "from utils import helper\nhelper.use()") == []
