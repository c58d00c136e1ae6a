"""Each check, shown a notebook with the one fault that it is there for, must find that fault and no other."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import nbformat
import pytest

from exercises import ex17
from exercises.kit import Prediction
from tests import checks
from tests.conftest import execute
from tools.lessons import notebooks

pytestmark = pytest.mark.elsewhere

LESSON = notebooks.lesson("17")


def lesson() -> Any:
    return notebooks.read(LESSON)


def cell(notebook: Any, name: str) -> Any:
    return next(cell for cell in notebook.cells if cell.id == name)


def small(*sources: str) -> Any:
    """A notebook of the setup cell and these cells, without outputs."""
    cells = [nbformat.v4.new_code_cell(notebooks.setup_source(), id="setup")]
    cells += [nbformat.v4.new_code_cell(source, id=f"cell-{i}") for i, source in enumerate(sources)]
    return nbformat.v4.new_notebook(cells=cells)


def run(notebook: Any, folder: Path) -> Any:
    notebooks.write(notebook, folder / "small.ipynb")
    return execute(folder / "small.ipynb")


# 1. Does it run?


def test_a_cell_that_raises_is_caught(clone):
    with pytest.raises(pytest.fail.Exception, match=r"^cell-1: ZeroDivisionError: division by zero\n"):
        run(small("1", "1 / 0"), clone)


def test_a_cell_that_kills_the_kernel_is_named(clone):
    with pytest.raises(pytest.fail.Exception, match=r"^cell-1: Kernel died"):
        run(small("1", "import os; os._exit(6)", "2"), clone)


# 2. Is it true?


def test_a_wrong_number_on_the_page_is_caught(clone):
    page = small("print(2 + 2)", "import time; print(time.perf_counter(), 's')", "3 * 3")
    executed = run(page, clone)
    page.cells = [nbformat.from_dict(found) for found in executed.cells]
    assert checks.output_faults(page, executed) == []
    page.cells[1].outputs[0].text = "5\n"
    page.cells[3].outputs[0].data["text/plain"] = "8"
    faults = checks.output_faults(page, executed)
    assert [fault.split(":")[0] for fault in faults] == ["cell-0", "cell-2"]
    page.cells[1].outputs = []
    assert checks.output_faults(page, executed)[0] == "cell-0: the page shows nothing, execution gives stdout '4'"


def test_a_fault_names_the_first_line_that_differs():
    first = checks.first_difference
    assert first([("stdout", "a\nb\nc")], [("stdout", "a\nB\nC")]) == ("stdout 'b'", "stdout 'B'")
    assert first([("stdout", "a")], [("stderr", "a")]) == ("stdout 'a'", "stderr 'a'")
    assert first([("stdout", "a"), ("error", "b")], [("stdout", "a")]) == ("error 'b'", "nothing")
    assert first([("error", "a\nb")], [("error", "a"), ("error", "b")]) == ("1 outputs", "2 outputs")


def test_faults_are_refused_one_a_line():
    checks.refuse([])
    with pytest.raises(pytest.fail.Exception, match=r"^disk-table: wrong\nplan: too long$"):
        checks.refuse(["disk-table: wrong", "plan: too long"])


def test_a_figure_that_shows_something_else_is_caught(clone):
    page = small(
        "from utils.show import draw\nfrom utils.mesh import make_mesh\ndraw.mesh(make_mesh((2, 4), ('x', 'y')))"
    )
    executed = run(page, clone)
    page.cells = [nbformat.from_dict(found) for found in executed.cells]
    assert checks.output_faults(page, executed) == []
    page.cells[1].outputs[0].data["text/plain"] = "Figure: A mesh, 'x' of 4 by 'y' of 2."
    assert len(checks.output_faults(page, executed)) == 1


def test_a_cell_that_varies_must_still_print(clone):
    page = small("print('one way')")
    page.cells[1].metadata["varies"] = "a reason"
    executed = run(page, clone)
    page.cells = [nbformat.from_dict(found) for found in executed.cells]
    page.cells[1].outputs[0].text = "another way\n"
    assert checks.output_faults(page, executed) == []
    executed.cells[1].outputs = []
    assert len(checks.output_faults(page, executed)) == 1


def test_what_is_masked():
    assert checks.mask("median 1.23 ms to 4 µs, 0.5 s") == "median <duration> to <duration>, <duration>"
    assert checks.mask("8 devices · jax 0.12.0.1") == "8 devices · jax <version>"
    assert checks.mask("8 devices · jax 0.13.0.dev20261120") == "8 devices · jax <version>"
    assert checks.mask("16 bytes of (2, 8), 4 copies") == "16 bytes of (2, 8), 4 copies"  # a number that counts is not


# 3. Alone.  4. Each cell twice.


def test_a_notebook_that_needs_its_neighbours_is_caught(tmp_path, served, monkeypatch):
    for name, value in served.items():
        monkeypatch.setenv(name, value)
    assert run(small("print(len(devices))"), tmp_path).cells[1].outputs[0].text == "8\n"
    with pytest.raises(pytest.fail.Exception, match="FileNotFoundError"):
        run(small("open('02_sharding.ipynb')"), tmp_path)


def test_a_cell_that_fails_the_second_time_is_caught(clone):
    page = small("x = 1", "del x")
    run(page, clone)
    with pytest.raises(pytest.fail.Exception, match="NameError"):
        run(checks.doubled(page), clone)


def test_a_cell_that_says_something_else_the_second_time_is_caught(clone):
    page = small("counts = []", "counts.append(1)\nprint(len(counts))")
    twice = run(checks.doubled(page), clone)
    once, again = checks.each_once(twice, second=False), checks.each_once(twice, second=True)
    assert [found.id for found in once.cells] == ["setup", "cell-0", "cell-1"]
    [fault] = checks.output_faults(once, again)
    assert fault.startswith("cell-1")


def test_a_warning_on_stderr_is_caught(clone):
    [fault] = checks.stderr_faults(run(small("import warnings; warnings.warn('look out')"), clone))
    assert "look out" in fault


# 5. Exercises.


def exercise_faults(change: Callable[[Any], None], module: ModuleType = ex17) -> list[str]:
    notebook = lesson()
    change(notebook)
    return checks.exercise_faults(notebook, module)


def replace(name: str, old: str, new: str) -> Callable[[Any], None]:
    def change(notebook: Any) -> None:
        source = cell(notebook, name).source
        assert old in source
        cell(notebook, name).source = source.replace(old, new)

    return change


def rename(old: str, new: str) -> Callable[[Any], None]:
    def change(notebook: Any) -> None:
        cell(notebook, old).id = new

    return change


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (replace("ex-newest-whole-stub", "...  # your code here", "return 4"), "newest_whole: ships solved"),
        (
            replace("ex-train-on-stub", "...  # your code here", "return 0"),
            "train_on: ships solved, or at least not as an empty stub",
        ),
        (
            replace("ex-newest-whole-stub", "(files)", "(names)"),
            "newest_whole: stub and solution have different signatures",
        ),
        (
            replace("ex-newest-whole-stub", "Return", "Give"),
            "newest_whole: stub and solution have different docstrings",
        ),
        (
            replace("ex-template-of-check", "# ex17.template_of.hint()\n", ""),
            "template_of: hint and solution do not stand",
        ),
        (replace("ex-template-of-check", "ex17.template_of.check(template_of)", "pass"), "the notebook has stubs ["),
        (rename("ex-template-of-stub", "ex-template-of"), "the notebook has stubs ["),
    ],
)
def test_an_exercise_with_a_fault_is_caught(change, fault):
    assert exercise_faults(lambda notebook: None) == []
    faults = exercise_faults(change)
    assert any(found.startswith(fault) for found in faults), faults


def test_a_solution_that_fails_and_an_empty_hint_are_caught(monkeypatch):
    broken = ModuleType("exercises.ex17")
    vars(broken).update(checks.exercises_of(ex17))

    def newest_whole(files):
        raise KeyError

    newest_whole.__doc__ = ex17.newest_whole.function.__doc__
    broken.newest_whole = type(ex17.newest_whole)(newest_whole, " ", ex17.newest_whole.cases)
    faults = exercise_faults(lambda notebook: None, broken)
    assert any("its hint is empty" in fault for fault in faults)
    assert any("its solution is rejected" in fault for fault in faults)


def test_a_prediction_with_a_fault_is_caught(clone):
    """By hand: the cell counts 4."""
    four = Prediction(4, "", {4: "both ways"}, "steps")
    module = ModuleType("exercises.ex17")
    module.four = four

    def notebook(guess="guess = None  # steps", name="four", counted=4):
        made = small("", f"{guess}\nex17.{name}.compare(guess, {counted})")
        made.cells[1].source = (
            "from exercises import ex17\nfrom exercises.kit import Prediction\n"
            f"ex17.four = Prediction({four.truth}, {four.why!r}, {four.slips}, {four.unit!r})"
        )
        return made

    assert checks.prediction_faults(notebook(), module) == []
    for fault, said in [
        (notebook(guess="guess = 3  # steps"), "cell-1: does not begin with"),
        (notebook(guess="guess = None"), "cell-1: does not begin with"),
        (notebook(guess=""), "cell-1: a guess and its comparison do not stand in one cell"),
        (notebook(name="five"), "compared ['five'], the module has ['four']"),
        (small("1"), "compared [], the module has ['four']"),
    ]:
        assert said in " ".join(checks.prediction_faults(fault, module))
    for counted, faults in [
        (4, []),
        (2, ["cell-1: Your guess, 4 steps, should be 2 steps (2 times too large): both ways."]),
    ]:
        done = run(checks.guessed(notebook(counted=counted), module), clone)
        assert checks.reading_faults(done, module) == faults


@pytest.mark.parametrize(
    ("varies", "guess", "faults"),
    [
        (True, "no", []),
        (True, "yes", []),
        (False, "no", ["cell-0: Your guess, no, should be yes: look again."]),
        (True, "maybe", ["cell-0: Your guess is 'maybe'; expected yes or no."]),
    ],
)
def test_a_guess_about_the_run_must_be_read_and_need_not_be_right(varies, guess, faults):
    """What is right depends on the run: here it was "yes". A guess that is not read at all is a fault all the same."""
    last = Prediction("yes", slips={"no": "look again"}, varies=varies)
    module = ModuleType("exercises.ex17")
    module.last = last
    done = small("ex17.last.compare(guess, counted)")
    said = last.reading(guess, "yes")
    cell(done, "cell-0").outputs = [nbformat.v4.new_output("stream", name="stdout", text=said)]
    assert checks.reading_faults(done, module) == faults


# 6. Structure.


def drop_alt(notebook: Any) -> None:
    cell(notebook, "opening").outputs[-1].metadata["image/png"].pop("alt")


def output(where: str, **fields: Any) -> Callable[[Any], None]:
    return lambda notebook: cell(notebook, where).outputs.append(nbformat.v4.new_output(**fields))


def append(name: str, text: str) -> Callable[[Any], None]:
    def change(notebook: Any) -> None:
        cell(notebook, name).source += text

    return change


def everywhere(old: str, new: str) -> Callable[[Any], None]:
    def change(notebook: Any) -> None:
        for found in notebook.cells:
            found.source = found.source.replace(old, new)

    return change


FAULTS = {
    "setup changed": (append("setup", "\nprint('mine')"), "the setup cell is not the common one"),
    "id in capitals": (rename("work-read", "Work"), "id 'Work' is not kebab-case"),
    "id by JupyterLab": (
        rename("disk", "d1ba3de2-4a2b-4c06-9a6e-0f1e2d3c4b5a"),
        "an editor made up the id 'd1ba3de2-4a2b-4c06-9a6e-0f1e2d3c4b5a': run make stamp",
    ),
    "no price": (replace("title", "**`kill -9` hits", "`kill -9` hits"), "lacks a line of the form: **A price"),
    "two titles": (append("save", "\n\n# Another"), "not exactly one H1, at the top"),
    "no opening": (rename("imports", "imported"), "does not begin with the cells"),
    "no aims": (replace("plan", "After this lesson you can", "You learn"), "plan: not three to five bullets"),
    "two bullets": (
        lambda n: setattr(cell(n, "plan"), "source", cell(n, "plan").source.replace("\n- ", "\n* ", 3)),
        "plan: not three to five bullets",
    ),
    "no minutes": (replace("plan", "45 minutes", "an hour"), "lacks a line of the form: **You need**"),
    "too few minutes": (replace("plan", "45 minutes", "20 minutes"), "plan: 20 minutes, and by the clock it takes"),
    "another number": (replace("title", "# 17 · ", "# 1 · "), "lacks a line of the form: # 17 · Title"),
    "nothing to take to work": (replace("work", "Take it to work", "The end"), "no section Take it to work"),
    "another script": (append("script", "\nprint(1)"), "script: is not examples/17_resume.py: run make stamp"),
    "a script that nobody runs": (replace("work-run", "resume.py", "r.py"), "script: no cell runs resume.py"),
    "dead link": (
        replace("reading", "(18_kernels_that_send.ipynb)", "(18_shading.ipynb)"),
        "the link to 18_shading.ipynb leads nowhere",
    ),
    "next but one": (
        replace("reading", "(18_kernels_that_send.ipynb)", "(19_plan_a_training_run.ipynb)"),
        "**Next:** leads to 19_plan_a_training_run.ipynb, and the next one is 18_kernels_that_send.ipynb",
    ),
    "another lesson's exercise": (
        everywhere("### Exercise 17.3", "### Exercise 2.3"),
        "is not of the form: ### Exercise 17.3 — Title (●●○ · 5 min)",
    ),
    "an exercise without its minutes": (everywhere(" · 12 min)", ")"), "is not of the form: ### Exercise 17.2 — Title"),
    "picture without words": (append("save", "\n\n![](../README.md)"), "save: a picture without alt text"),
    "figure without words": (drop_alt, "opening: a figure without alt text"),
    "stderr": (
        output("three", output_type="stream", name="stderr", text="careful"),
        "three: writes to stderr",
    ),
    "error": (
        output("three", output_type="error", ename="KeyError", evalue="", traceback=[]),
        "three: ends in an error: KeyError",
    ),
    "stray axes": (
        output("three", output_type="display_data", data={"text/plain": "<Axes: >"}),
        "three: a stray line",
    ),
    "magic": (append("three", "\n!pip install x"), "three: a shell or magic command"),
    "no reason": (
        lambda n: cell(n, "kill-run").metadata.update(varies=" "),
        "kill-run: varies, and does not say why",
    ),
    "missing output": (
        lambda n: setattr(cell(n, "opening"), "outputs", []),
        "opening: its last line is there to show",
    ),
    "too long": (append("three", "\nx = 1" * 20), "three: more than 20 lines"),
    "no predictions": (everywhere("> **Predict.**", "> Guess."), "0 predictions; a page has five to seven"),
    "no exercises": (everywhere("### Exercise ", "### Task "), "0 exercises; a page has three or four"),
    "five exercises": (
        append("half-batch", "".join(f"\n\n### Exercise 17.{i} — One more (●○○ · 3 min)" for i in (4, 5))),
        "5 exercises; a page has three or four",
    ),
    "to do": (append("save", "\n\nTODO: more."), "says TODO"),
    "no figure": (
        lambda n: cell(n, "opening").outputs[-1].data.pop("image/png"),
        "opening: draws no picture",
    ),
    "just": (append("save", "\n\nJust run it."), "save: says 'Just'"),
    "too large": (append("save", " " + "x" * 600_000), "larger than 600 kB"),
}


@pytest.mark.parametrize(("change", "fault"), FAULTS.values(), ids=FAULTS)
def test_a_structural_fault_is_caught(change, fault, tmp_path):
    folder = tmp_path / "notebooks"
    shutil.copytree(LESSON.parent, folder)
    shutil.copytree(LESSON.parents[1] / "examples", tmp_path / "examples")
    notebook = lesson()
    change(notebook)
    notebooks.write(notebook, folder / LESSON.name)
    faults = checks.structure_faults(folder / LESSON.name)
    assert [found for found in faults if fault in found], faults
    # That fault alone, but where one implies another: a lost figure is a missing output too.
    assert len(faults) <= 2


@pytest.mark.parametrize(
    ("number", "old", "new", "fault"),
    [
        ("05b", "### Exercise 5.5", "### Exercise 5.1", "is not of the form: ### Exercise 5.5 — "),  # 05 has four
        ("90", "](01_devices.ipynb)", "](https://docs.jax.dev)", "**Next:** leads to no lesson, and the next one is"),
    ],
)
def test_a_second_part_counts_on_and_the_last_lesson_leads_somewhere(tmp_path, number, old, new, fault):
    folder = tmp_path / "notebooks"
    shutil.copytree(LESSON.parent, folder)
    shutil.copytree(LESSON.parents[1] / "examples", tmp_path / "examples")
    path = folder / notebooks.lesson(number).name
    assert checks.structure_faults(path) == []
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    [found] = checks.structure_faults(path)
    assert fault in found


def test_a_name_taken_twice_is_caught():
    def faults(reads):
        return list(checks._name_faults(small("rows = 8", reads, "rows = [1, 2]").cells))

    found = ["cell-2: takes the name 'rows', which a function of the cell cell-1 reads"]
    assert faults("ways = [lambda x: x + rows]") == faults("def way(x):\n    return [x, [rows for _ in x]]") == found
    assert not faults("rows = 9\nways = [lambda x: x + rows]")  # run again, it has its own
    assert not faults("def way(rows):\n    return [row for row in rows]")
    assert not faults("ways = rows + 1")
    assert not faults("ways = [x + rows for x in range(3)]")


def test_one_id_twice_is_caught(tmp_path):
    shutil.copytree(LESSON.parent, tmp_path / "notebooks")
    copy = tmp_path / "notebooks" / LESSON.name
    copy.write_text(copy.read_text(encoding="utf-8").replace('"id": "three"', '"id": "cast"'), encoding="utf-8")
    with pytest.warns(Warning, match="Non-unique cell id"):
        assert "two cells have one id" in checks.structure_faults(copy)


@pytest.mark.parametrize(
    "change",
    [
        lambda n: cell(n, "kill-run").update(execution_count=3),
        lambda n: n.metadata.update(kaggle={"accelerator": "tpu"}),
        lambda n: cell(n, "kill-run").metadata.update(collapsed=True),
        lambda n: cell(n, "setup").metadata.update(slideshow={"slide_type": "skip"}),
    ],
    ids=["execution count", "metadata of a platform", "metadata of a cell", "slide type by the rule"],
)
def test_what_is_not_canonical_is_caught(change, tmp_path):
    folder = tmp_path / "notebooks"
    shutil.copytree(LESSON.parent, folder)
    shutil.copytree(LESSON.parents[1] / "examples", tmp_path / "examples")
    notebook = lesson()
    change(notebook)
    (folder / LESSON.name).write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
    [fault] = checks.structure_faults(folder / LESSON.name)
    assert fault.startswith("not in canonical form") and "run make stamp" in fault


# 7. Badges.


def test_a_badge_of_another_place_is_caught():
    notebook = lesson()
    assert checks.badge_faults(notebook, f"notebooks/{LESSON.name}") == []
    assert checks.badge_faults(notebook, "notebooks/02_sharding.ipynb")
    name, _ = notebooks.repository()
    cell(notebook, "title").source = cell(notebook, "title").source.replace(name, "somebody/else")
    assert checks.badge_faults(notebook, f"notebooks/{LESSON.name}")
