"""Test lesson 16's figure of each process's shards, and of the processes that can fetch the complete array."""

from __future__ import annotations

import re

from tests.site.interactive_figures.conftest import cell_of


def test_two_processes_hold_and_fetch_what_the_lesson_prints(open_figure):
    at = open_figure("process_shards")
    runs = "".join(output.get("data", {}).get("text/plain", "") for output in cell_of("16", "fetch-run").outputs)
    parts = re.split(r"process \d · ", runs)[1:]
    assert len(parts) == 2
    for process, text in enumerate(parts):
        figure_text = at.by_label({"seen": process})
        shards = re.search(r"its shards: (.*?)\n +full:", text, re.DOTALL)[1]
        pairs = re.findall(r"\[ *(\d+)\. +(\d+)\.\]", shards)
        assert len(pairs) == 4
        assert f"4 addressable shards of x: {', '.join(f'[{a}:{int(b) + 1}]' for a, b in pairs)}. " in figure_text
        assert (
            re.search(r"^ +x: RuntimeError", text, re.MULTILINE)
            and f"raises an error in process {process}" in figure_text
        )
        assert "8 of the 16 numbers" in figure_text


def test_meshes_of_two_axes(open_figure):
    """Compare the shards on meshes of two axes with those of JAX 0.10.2 and 0.7.2 in the same number of processes."""
    at = open_figure("process_shards")
    assert (
        "[0:8], [8:16], [0:8], [8:16]. x is sharded, but all 16 numbers are in this process, so np.asarray(x) works"
        in at.set(mesh="model 4 x data 2")
    )
    assert "shards of x: each [8:16]. These are only 8 of the 16" in at.set(mesh="data 2 x model 4")
    assert "[0:4], [4:8], [8:12], [12:16]. x is sharded, but all" in at.set(spec="P('model')")
    # Process 1 of 4 has the mesh's positions 2 and 3. The first name in a spec splits into the larger pieces, even if
    # it's the mesh's second axis.
    assert "2 addressable shards of x: [8:12], [12:16]. These are only 8 of" in at.set(processes="4")
    at.by_label({"seen": 1})
    figure_text = at.set(mesh="model 2 x data 4", spec="P(('data', 'model'))")
    assert "shards of x: [8:10], [12:14]. These are only 4 of the 16 numbers" in figure_text
    assert "so np.asarray(x) raises an error in process 1." in figure_text
    assert "each [0:16]. x is replicated on every device, so np.asarray(x) works in every process." in at.set(
        spec="P()"
    )


def test_the_process_that_looks_is_one_of_them(open_figure):
    at = open_figure("process_shards")
    at.set(processes="8")
    assert at.by_label({"seen": 7}).startswith(
        "Process 7 of 8 has 1 addressable shard of x: [14:16]. These are only 2 of"
    )
    assert at.set(processes="2").startswith("Process 1 of 2 has ")
    alone = at.set(processes="1")
    assert alone.startswith("Process 0 of 1 has 8 addressable shards of x: [0:2], ") and "np.asarray(x) works" in alone
