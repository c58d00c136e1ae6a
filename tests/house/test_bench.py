from __future__ import annotations

import nbformat
import pytest

from tools.upkeep import bench

pytestmark = pytest.mark.elsewhere


def test_a_lesson_costs_what_its_kernel_and_its_children_use(tmp_path):
    burn = "import time\nwhile time.process_time() < 0.4: pass"
    source = f"import subprocess, sys, time\nsubprocess.run([sys.executable, '-c', {burn!r}])\ntime.sleep(1)"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source, id="burn")])
    found = bench.lesson_cost(notebook, tmp_path)
    assert found.cpu_seconds > 0.4 and found.seconds > 1 and 10 < found.megabytes < 500
    assert [cell.id for cell in notebook.cells] == ["burn"]


def test_the_goals_that_are_missed_are_named():
    assert bench.LessonCost(60, 25, 2000).over == []
    assert bench.LessonCost(61, 25.1, 100).over == ["seconds", "cpu_seconds"]
