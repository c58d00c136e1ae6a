"""Hide the answer to each question in a reader's copy of a lesson until the reader has made a guess.

In the copies, each line with `guess = None` also contains `or guess = skip`. Until the reader replaces None, the cell
still runs, so that later cells work, but its output is withheld. Cells that belong to the answer begin with the line
AFTER_GUESS in the copies, and their output is withheld, too. The original lessons contain neither addition, because
they're executed to record all outputs.
"""

from __future__ import annotations

import re
import sys
from typing import Any

SKIP = "skip"
OR_SKIP = "or guess = skip"
UNANSWERED = re.compile(rf"guess = None\b.*{OR_SKIP}")
AFTER_GUESS = "# Guess first; then run this cell, and open it to read.\n"
MESSAGE = (
    "Guess first: replace None with your guess, and run this cell again. To see the answer without one: guess = skip"
)
MESSAGE_AFTER = "Guess first: answer the question above, and run its cell. Then run this one."
is_withholding = False  # whether the running cell's output is being withheld


def wait_for_guesses(shell: Any) -> None:
    """Make an IPython shell ask for a guess instead of showing the output of a cell whose question has no guess yet."""
    if "skip" in shell.user_ns:  # the setup cell ran before, and registered the callbacks
        return
    from IPython.utils.capture import capture_output

    shell.user_ns["skip"] = SKIP
    answered = False  # whether the last question that ran has a guess
    captures: list[Any] = []

    def before_cell(info: Any) -> None:
        global is_withholding
        nonlocal answered
        source = info.raw_cell or ""
        if is_question := source.startswith("guess = "):
            answered = not UNANSWERED.match(source)
        if answered or not (is_question or source.startswith(AFTER_GUESS)):
            return
        is_withholding = True
        capture = capture_output()
        output = capture.__enter__()
        # IPython shows the value of a cell's last line through display_trap.hook, which it installs after this event.
        hook, shell.display_trap.hook = shell.display_trap.hook, sys.displayhook
        captures.append((capture, output, hook, MESSAGE if is_question else MESSAGE_AFTER))

    def after_cell(result: Any) -> None:
        global is_withholding
        while captures:
            is_withholding = False
            capture, output, shell.display_trap.hook, message = captures.pop()
            capture.__exit__(None, None, None)
            print(message) if result.success else output.show()

    shell.events.register("pre_run_cell", before_cell)
    shell.events.register("post_run_cell", after_cell)
