"""In a reader's copy, a question that has no guess yet shows no answer: a guess cannot be spent by accident.

The reader's copies write `or guess = skip` behind `guess = None`. Such a cell runs, so that later ones work, and
its output waits; lessons that are executed for their outputs have no such line.
"""

from __future__ import annotations

import re
from typing import Any

SKIP = "skip"
OR_SKIP = "or guess = skip"
ASKS = re.compile(rf"guess = None\b.*{OR_SKIP}")
SAID = "Your guess first: put it in place of None, and run this cell again. To see the answer without one: guess = skip"
waiting = False  # is the cell that runs now one without a guess?


def wait_for_guesses(shell: Any) -> None:
    """Of an IPython shell: from now on, a cell that asks and has no guess says so, and shows nothing else."""
    if "skip" in shell.user_ns:  # the setup cell runs again
        return
    from IPython.utils.capture import capture_output

    shell.user_ns["skip"] = SKIP
    held: list[Any] = []

    def before(info: Any) -> None:
        global waiting
        if ASKS.match(info.raw_cell or ""):
            waiting = True
            capture = capture_output()
            held.append((capture, capture.__enter__()))

    def after(result: Any) -> None:
        global waiting
        while held:
            waiting = False
            capture, output = held.pop()
            capture.__exit__(None, None, None)
            print(SAID) if result.success else output.show()

    shell.events.register("pre_run_cell", before)
    shell.events.register("post_run_cell", after)
