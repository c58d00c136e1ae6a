"""Explain an error message by an entry in problems.toml, or by the row of appendix 90 about the old API behind it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from find_old_jax.find import advice
from find_old_jax.old_apis import PHRASES, ROWS, WORDS, row_problems
from find_old_jax.problem_index import Problem, find_by_message, problems, search
from find_old_jax.release_names import Record
from find_old_jax.replacements import KEYWORDS, REPLACEMENTS

# Patterns whose groups capture the dotted name in a message.
NAME_PATTERNS = (
    re.compile(r"module '(jax[\w.]*)' has no attribute '(\w+)'"),
    re.compile(r"cannot import name '(?P<name>\w+)' from (?:partially initialized module )?'(?P<module>jax[\w.]*)'"),
    re.compile(r"No module named '(jax[\w.]*)'"),
    re.compile(
        r"\b((?:jax|jnp)(?:\.\w+)+)[`']?(?: and all its contents)? (?:is|was|were|has been|have been|will be) "
        r"(?:\w+ )?(?:deprecated|removed|deleted)"
    ),
    re.compile(r"[Aa]ccessing (jax(?:\.\w+)+)"),
)  # fmt: skip
KEYWORD_PATTERN = re.compile(r"(?:(?:(\w+)\(\)|(\w+)) got an )?unexpected keyword argument '(\w+)'")


@dataclass(frozen=True)
class Answer:
    """The old API that caused a message, and its replacement."""

    name: str
    new: str
    row: int | None

    def __str__(self) -> str:
        row = f" (row {self.row} of appendix 90)" if self.row else ""
        return f"{self.name} -> {self.new}{row}"


def find_answer(message: str, target: str | None = None) -> Answer | None:
    """Return the old API that caused an error message from JAX or Python, with its replacement, or None.

    Raises ValueError if the record doesn't contain the target version.
    """
    record, message = Record(target), " ".join(message.split())
    if known := find_by_phrase(message):
        return known
    if match := KEYWORD_PATTERN.search(message):
        function, keyword = match[1] or match[2], match[3]
        for (name, old), (new, row) in KEYWORDS.items():
            if old == keyword and (function in (None, "__init__") or name.endswith(f".{function}")):
                return Answer(f"{name}({keyword}=)", new, row)
    for pattern in NAME_PATTERNS:
        for match in pattern.finditer(message):
            parts = [match["module"], match["name"]] if "name" in pattern.groupindex else match.groups()
            name = ".".join(parts).replace("jnp.", "jax.numpy.")
            status = record.status(name, as_module="No module" in match[0])
            if status.state in ("gone", "warns") or name in REPLACEMENTS:
                return Answer(*advice(record, status, name))
    return None


def find_by_phrase(message: str) -> Answer | None:
    """Return the answer for the first phrase in `PHRASES` or `WORDS` that a message contains, or None."""
    of_rows = {
        phrase: (ROWS[row].old_apis[0].text, ROWS[row].new, row) for row, some in PHRASES.items() for phrase in some
    }
    for phrase, known in {**of_rows, **WORDS}.items():
        if all(part in message for part in phrase.split(" ... ")):
            return Answer(*known)
    return None


def explain(message: str, target: str | None = None) -> Problem | Answer | None:
    """Return the problem that this message belongs to, or else the old API that caused the message, or None.

    Raises ValueError if the record doesn't contain the target version.
    """
    known = find_by_message(message)
    return known[0] if known else find_answer(message, target)


def closest_problems(description: str, limit: int = 3) -> list[Problem]:
    """Return up to `limit` problems and rows of appendix 90, those that best fit a description."""
    return search(description, limit, (*problems(), *row_problems()))
