"""Look up common problems in parallel JAX by error message or by a free-form description.

The problems are in problems.toml. site/_static/problems.js implements the same search, and the site's tests compare
the results.
"""

from __future__ import annotations

import math
import re
import textwrap
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

WILDCARD = " ... "  # matches any text in a message's pattern
WEIGHTS = {"title": 4, "keywords": 3, "messages": 2, "cause": 1, "fix": 0.5}  # how much a word counts in each field
LENGTH_PENALTY = 0.15  # 0: entries with many words lose nothing; 1: scores are inversely proportional to length
SUFFIXES = re.compile(r"(?<=\w{3})(?:ations?|at(?:e[ds]?|ing|or)|ings?|e[drs]|s|ly|e)$")  # removed by stemming
DOUBLED = re.compile(r"([bdgmnprt])\1$")  # a consonant that English doubles before a suffix, as in running
WORD = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)*")


@dataclass(frozen=True)
class Problem:
    """A problem with its cause and its fix, and the section of a lesson that explains it.

    The fields are described at the top of problems.toml.
    """

    id: str
    topic: str
    title: str
    cause: str
    fix: str
    lesson: str
    section: str
    messages: tuple[str, ...] = ()
    keywords: str = ""
    since: str = ""
    until: str = ""
    link: str = ""
    row: int | None = None
    hardware: str = ""
    program: str = ""
    processes: int = 1
    message: str = ""  # an example of the message, from the linked thread, if there's no program

    def __str__(self) -> str:
        return "\n".join(
            [
                self.title.replace("`", ""),
                *textwrap.wrap(self.cause.replace("`", ""), 100, initial_indent="  ", subsequent_indent="  "),
                *(f"    {line}" for line in self.fix.splitlines()),
                f"  Lesson {self.lesson}, {self.section.replace('`', '')}",
                *([f"  {self.link}"] if self.link else []),
            ]
        )


@cache
def data() -> dict[str, Any]:
    """Return the parsed contents of problems.toml."""
    return tomllib.loads(Path(__file__).with_name("problems.toml").read_text(encoding="utf-8"))


@cache
def common_words() -> frozenset[str]:
    """Return the words that a search ignores."""
    return frozenset(data()["common"].split())


@cache
def synonyms() -> dict[str, str]:
    """Map each stem that has synonyms to the stem that represents them all."""
    groups = [[shorten(word) for word in line.split()] for line in data()["synonyms"].splitlines()]
    return {word: group[0] for group in groups for word in group[1:]}


@cache
def problems() -> tuple[Problem, ...]:
    """Return all problems, in the order of the file."""
    return tuple(
        Problem(
            **{
                **entry,
                "messages": tuple(entry.get("messages", ())),
                "fix": entry["fix"].strip("\n"),
                "program": entry.get("program", "").strip("\n"),
            }
        )
        for entry in data()["problem"]
    )


def matched_length(pattern: str, message: str) -> int:
    """Return the total length of a pattern's parts if the message contains all of them, or 0 otherwise.

    The message must be in lower case; the pattern needn't be.
    """
    parts = pattern.lower().split(WILDCARD)
    return sum(map(len, parts)) if all(part in message for part in parts) else 0


def find_by_message(message: str, entries: Iterable[Problem] | None = None) -> list[Problem]:
    """Return the problems whose messages occur in a text, such as a traceback, with the longest match first."""
    message = " ".join(message.split()).lower()
    lengths = {
        problem: max((matched_length(pattern, message) for pattern in problem.messages), default=0)
        for problem in (problems() if entries is None else entries)
    }
    return sorted((problem for problem, length in lengths.items() if length), key=lambda problem: -lengths[problem])


def shorten(word: str) -> str:
    """Strip a word's suffix and undo the doubling of the consonant before it, as in running and run."""
    short = SUFFIXES.sub("", word)
    return DOUBLED.sub(r"\1", short) if short != word else short


def stem(text: str, parts: bool = False) -> list[str]:
    """Return the stems of a text's words in order, leaving out common words and merging synonyms.

    If `parts` is true, a name such as `set_mesh` is followed by its parts.
    """
    names = WORD.findall(text.lower().replace("re-", "re"))
    words = [word for name in names for word in (dict.fromkeys([name, *name.split("_")]) if parts else [name])]
    stems = [shorten(word) for word in words if word not in common_words()]
    return [synonyms().get(one, one) for one in stems]


def stems(text: str) -> list[str]:
    """Return a text's unique words in lower case, leaving out common words and stripping suffixes.

    A name such as `set_mesh` counts as a word, and so do its parts.
    """
    return list(dict.fromkeys(stem(text, parts=True)))


@cache
def weights(problem: Problem) -> dict[str, float]:
    """Return the weight of each word that a problem contains."""
    texts = {field: getattr(problem, field) for field in WEIGHTS}
    weight_by_word: dict[str, float] = {}
    for field, text in texts.items():
        for word in stems(" ".join(text) if field == "messages" else text):
            weight_by_word[word] = max(weight_by_word.get(word, 0), WEIGHTS[field])
    return weight_by_word


def loose_match(pattern: str, words: list[str]) -> float:
    """Return the fraction of a pattern's words found among `words` in the same order, or 0 if it's less than half.

    A pattern of a single word never matches loosely.
    """
    expected = stem(pattern)
    matched = start = 0
    for word in expected:
        if word in words[start:]:
            start = words.index(word, start) + 1
            matched += 1
    return matched / len(expected) if len(expected) > 1 and 2 * matched >= len(expected) else 0


def search(query: str, limit: int = 3, entries: Iterable[Problem] | None = None) -> list[Problem]:
    """Return the problems that best fit a query: those whose messages it contains, then those that share words with it.

    The fewer problems contain a word, the more it counts. A word of four letters or more also finds longer words that
    begin with it. A problem scores higher if the query contains most words of one of its messages in the same order,
    and lower if its entry has many words.
    """
    candidates = tuple(problems() if entries is None else entries)
    scores = dict.fromkeys(candidates, 0.0)
    for word in stems(query):
        weight_by_problem = {}
        for problem in candidates:
            words = weights(problem)
            weight = words.get(word, 0)
            if not weight and len(word) >= 4:
                weight = max((words[other] / 2 for other in words if other.startswith(word)), default=0)
            if weight:
                weight_by_problem[problem] = weight
        for problem, weight in weight_by_problem.items():
            scores[problem] += weight * math.log(1 + len(candidates) / len(weight_by_problem))
    average = sum(sum(weights(problem).values()) for problem in candidates) / max(1, len(candidates))
    in_order = stem(query)
    for problem in candidates:
        if scores[problem]:
            bonus = max((loose_match(pattern, in_order) for pattern in problem.messages), default=0)
            length = sum(weights(problem).values()) / average
            scores[problem] *= (1 + bonus) / (1 - LENGTH_PENALTY + LENGTH_PENALTY * length)
    by_score = sorted((problem for problem in candidates if scores[problem]), key=lambda problem: -scores[problem])
    return list(dict.fromkeys([*find_by_message(query, candidates), *by_score]))[:limit]
