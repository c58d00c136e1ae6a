"""Test on small notebooks that executing a lesson reveals its faults.

Errors and warnings differ between versions of JAX and Python, so `make test-oldest` and `make test-newest` run these
tests.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from tests import lesson_lint
from tests.conftest import APPENDIX, execute_notebook
from tools.lessons import notebooks

pytestmark = pytest.mark.other_versions

# Every supported version of JAX warns that this call is deprecated. JAX 0.7.2 attributes the warning to one of its own
# lines, and later versions attribute it to the caller's line.
OLD = "jax.jit(lambda x: x, backend='cpu')(1)"
HELPER = f"import jax, warnings\ndef use():\n    {OLD}\ndef warn():\n    warnings.warn('going', FutureWarning)\n"
STRANGER = "import warnings\ndef use():\n    warnings.warn('none of ours', PendingDeprecationWarning)\n"


def small(*sources: str) -> NotebookNode:
    """Return a notebook with the setup cell and a cell for each source, without outputs."""
    cells = [nbformat.v4.new_code_cell(notebooks.setup_source(), id="setup")]
    cells += [nbformat.v4.new_code_cell(source, id=f"cell-{i}") for i, source in enumerate(sources)]
    return nbformat.v4.new_notebook(cells=cells)


def run(folder: Path, *sources: str, name: str = "small.ipynb") -> NotebookNode:
    """Execute a notebook with these sources in a folder, and return the result."""
    notebooks.write(small(*sources), folder / name)
    return execute_notebook(folder / name)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the notebooks folder of a clone with an additional helper, and a module that isn't part of the course."""
    for package in notebooks.PACKAGES:
        copy = shutil.copytree if (notebooks.ROOT / package).is_dir() else shutil.copy
        copy(notebooks.ROOT / package, tmp_path / package)
    (tmp_path / "utils" / "helper.py").write_text(HELPER)
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "stranger.py").write_text(STRANGER)
    return tmp_path / "notebooks"


@pytest.mark.parametrize(
    ("source", "message"),
    [("1 / 0", "cell-1: ZeroDivisionError: division by zero\n"), ("import os; os._exit(6)", "cell-1: Kernel died")],
)
def test_a_cell_that_ends_the_execution_is_reported(clone, source, message):
    with pytest.raises(pytest.fail.Exception, match=f"^{message}"):
        run(clone, "1", source, "2")


def test_differences_from_the_page_are_reported(clone):
    executed = run(clone, "print(2 + 2)", "3 * 3", "print(7)")
    page = nbformat.from_dict(executed)
    assert lesson_lint.output_faults(page, executed) == []
    page.cells[1].outputs = []
    page.cells[2].outputs[0].data["text/plain"] = "8"
    page.cells[3].outputs[0].text = "8\n"
    page.cells[3].metadata["output_varies"] = "a reason"
    first, second = lesson_lint.output_faults(page, executed)
    assert first == "cell-0: the page shows nothing, execution gives stdout '4'" and second.startswith("cell-1: ")


@pytest.mark.parametrize(
    ("page", "executed", "same_for"),
    [
        ("computes 0.44 s", "computes 9.99 s", {"durations", "numbers", "words"}),  # unmarked outputs must not differ
        ("first 41.3 ms", "first  9.0 µs", {"durations", "numbers", "words"}),
        ("loss 0.0013, 4 of 397", "loss 1e-3, 12 of 397", {"numbers", "words"}),
        ("16 bytes in 0.5 s", "8 bytes in 0.5 s", {"numbers", "words"}),
        ("first 41.3 ms", "then 41.3 ms", {"words"}),
        ("41.3 ms", "", set()),
    ],
)
def test_only_the_marked_part_of_an_output_may_vary(page, executed, same_for):
    def notebook(text: str, varying: str) -> NotebookNode:
        outputs = [nbformat.v4.new_output("stream", text=text)]
        metadata = {"output_varies": "a reason", "output_varies_in": varying} if varying else {}
        return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("x", outputs=outputs, metadata=metadata)])

    for varying in ("", *lesson_lint.OUTPUT_VARIES_IN):
        differs = bool(lesson_lint.output_faults(notebook(page, varying), notebook(executed, varying)))
        assert differs == (varying not in same_for), varying


def test_a_table_in_html_is_compared():
    pages = []
    for value in ("15.0", "16.0"):
        data = {"text/plain": "Run()", "text/html": f"<table><td>{value}</td></table>"}
        outputs = [nbformat.v4.new_output("execute_result", data=data)]
        pages.append(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("run", id="run", outputs=outputs)]))
    page, executed = pages
    assert lesson_lint.output_faults(page, page) == []
    [fault] = lesson_lint.output_faults(page, executed)
    assert fault == "run: the page shows text/html '15.0</td>', execution gives text/html '16.0</td>'"


@pytest.mark.parametrize(
    ("text", "faulty"), [("It's just a mesh.", True), ("just-in-time compilation", False), ("`just`", False)]
)
def test_belittling_words_are_reported_except_in_technical_terms(tmp_path, text, faulty):
    cell = nbformat.v4.new_markdown_cell(text, id="a")
    assert list(lesson_lint._text_faults([cell], tmp_path)) == (["a: belittling word 'just'"] if faulty else [])


def test_a_deprecated_api_is_reported(folder):
    """Test that every use of a deprecated API is found, although JAX and Python by default report a line only once."""
    cells = [f"import jax\n{OLD}", "from utils import helper\nhelper.use()", "helper.use()", "helper.warn()"]
    messages = lesson_lint.stderr_faults(run(folder, *cells, "import stranger\nstranger.use()"))
    assert [fault.split(":")[0] for fault in messages] == ["cell-0", "cell-1", "cell-2", "cell-3"]
    assert all("DeprecationWarning: backend and device" in fault for fault in messages[:3])
    appendix = run(folder, "from utils import helper\nhelper.use()", name=f"{APPENDIX}_small.ipynb")
    assert lesson_lint.stderr_faults(appendix) == []  # the appendix shows deprecated APIs on purpose


def test_a_reassigned_name_is_reported():
    """Test the check for reassigned names on every Python, because 3.12 changed the symbol tables of comprehensions."""

    def faults(reads):
        return list(lesson_lint._name_faults(small("rows = 8", reads, "rows = [1, 2]").cells))

    expected = ["cell-2: reassigns 'rows', which a function in the cell cell-1 reads"]
    assert faults("ways = [lambda x: x + rows]") == faults("def way(x):\n    return [x, [rows for _ in x]]") == expected
    assert not faults("rows = 9\nways = [lambda x: x + rows]")  # this cell sets `rows` itself, so it can run again
    assert not faults("def way(rows):\n    return [row for row in rows]")
    assert not faults("ways = rows + 1")
    assert not faults("ways = [x + rows for x in range(3)]")
