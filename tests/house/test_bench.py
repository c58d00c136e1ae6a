from __future__ import annotations

from tools import bench


def test_the_four_ways_of_lesson_06_run_in_turns(capsys):
    bench.training(steps=1, repeats=2)
    printed = capsys.readouterr().out
    for way in ("single device", "pmap", "shard_map", "jit"):
        assert f"\n{way}  " in printed
