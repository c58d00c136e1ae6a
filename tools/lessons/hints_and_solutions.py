"""Read the hints and solutions of exercises, and write them as Markdown for the site and the slides."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from tools.lessons.notebooks import ROOT


@dataclass(frozen=True)
class Answer:
    """An exercise's hint and solution."""

    hint: str
    solution: str


def answers_of(number: str) -> dict[str, Answer]:
    """Parse a lesson's exercise module without importing JAX, and return each exercise's hint and solution by name."""
    source = (ROOT / "exercises" / f"ex{number}.py").read_text(encoding="utf-8")
    answers, lines = {}, source.splitlines()
    functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    for function in functions:
        for decorator in function.decorator_list:
            if isinstance(decorator, ast.Call) and getattr(decorator.func, "id", "") == "exercise":
                hint = ast.literal_eval(decorator.args[0])
                answers[function.name] = Answer(hint, "\n".join(lines[function.lineno - 1 : function.end_lineno]))
    return answers


def escape_markdown(text: str) -> str:
    """Escape plain text so that Markdown displays it unchanged, except that `code` is still displayed as code."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(part if i % 2 else re.sub(r"([\\*_\[\]<>$#|~`])", r"\\\1", part) for i, part in enumerate(parts))


def code_block(source: str) -> str:
    """Return Python source as a Markdown code block."""
    return f"```python\n{source}\n```"
