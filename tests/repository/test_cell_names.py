"""Test that generated cell ids are replaced with names derived from the content, and that all other ids are kept."""

from __future__ import annotations

from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools.lessons import cell_names, notebooks
from tools.lessons.notebooks import QUESTION

MADE_UP = ("3f2b8a1c-0d4e-4f5a-9b6c-7d8e9f0a1b2c", "0c1f2b3a", "deadbeef", "aB3dEfGhIjKl", "x_1")


def test_generated_ids_are_recognised():
    assert all(map(cell_names.GENERATED_ID.fullmatch, MADE_UP))
    chosen = {cell.id for path in notebooks.lessons() for cell in notebooks.read(path).cells}
    assert not [name for name in chosen if cell_names.GENERATED_ID.fullmatch(name)]


def test_cells_are_named_after_their_content():
    stub = 'def who_holds(row):\n    """Return it."""\n    ...  # your code here'
    cells = [
        (new_markdown_cell("## Cut the rows: in *two*, or in four?"), "cut-the-rows-in"),
        (new_code_cell("x = 1"), "cut-the-rows-in-run"),
        (new_markdown_cell("As you see."), "cut-the-rows-in-read"),
        (new_markdown_cell(f"{QUESTION} And now?"), "cut-the-rows-in-ask"),
        (new_code_cell("x = 2"), "cut-the-rows-in-run-2"),
        (new_code_cell("x = 3"), "cut-the-rows-in-run-3"),
        (new_markdown_cell("### Exercise 2.1 — Who holds it? (●○○ · 5 min)\n\nA task."), "ex-who-holds-task"),
        (new_code_cell(stub), "ex-who-holds-stub"),
        (new_code_cell("ex02.who_holds.check(who_holds)\n# ex02.who_holds.hint()"), "ex-who-holds-check"),
        (new_code_cell("x = 4", id="kept"), "kept"),
        (new_markdown_cell("Read."), "kept-read"),
        (new_markdown_cell("### 8 devices"), "kept-read-2"),
    ]
    notebook = new_notebook(cells=[cell for cell, _ in cells])
    for i, cell in enumerate(notebook.cells):
        if cell.id != "kept":
            cell.id = f"0000000{i:x}"
    cell_names.name_cells(notebook)
    assert [cell.id for cell in notebook.cells] == [name for _, name in cells]
    before = notebooks.to_text(notebook)
    cell_names.name_cells(notebook)
    assert notebooks.to_text(notebook) == before
