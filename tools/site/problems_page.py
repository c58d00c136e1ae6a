"""Generate the entries of the site's problems page, and the data for searching them there and on the old-code page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from typing import Any

from find_old_jax.old_apis import row_problems
from find_old_jax.problem_index import (
    DOUBLED,
    LENGTH_PENALTY,
    SUFFIXES,
    WEIGHTS,
    WILDCARD,
    Problem,
    common_words,
    problems,
    synonyms,
)

from tools.lessons import notebooks

DIFFICULTY = re.compile(r"(?<=\()[●○]+ · \d+ min(?=\)$)")  # on the site, anchors omit these no-break spaces


def all_problems() -> tuple[Problem, ...]:
    """Return the entries of problems.toml, and then the rows of appendix 90."""
    return (*problems(), *row_problems())


def entries() -> str:
    """Return the Markdown of all entries, with a heading for each topic."""
    parts = []
    for topic, some in groupby(all_problems(), lambda problem: problem.topic):
        parts += [f"## {topic}", *("\n\n".join(_entry(problem)) for problem in some)]
    return "\n\n".join(parts)


def _entry(problem: Problem) -> Iterator[str]:
    """Yield the paragraphs of an entry."""
    yield f"(problem-{problem.id})=\n### {problem.title}"
    if problem.messages:
        messages = "; ".join(f"`` {pattern.replace(WILDCARD, ' … ')} ``" for pattern in problem.messages)
        until = f"before JAX {problem.until}" if problem.until else ""
        since = f"in JAX {problem.since} or newer" if problem.since else ""
        versions = f" ({since or until})" if since or until else ""
        yield f"**Message**{versions}: {messages}"
    yield problem.cause
    yield f"```{'text' if problem.topic == 'Old code' else 'python'}\n{problem.fix}\n```"
    lesson = f"Lesson {problem.lesson}: {problem.section}"
    links = [f"[{lesson}](notebooks/{notebooks.lesson(problem.lesson).name}#{anchor(problem.section)})"]
    if problem.link:
        thread = re.fullmatch(r"https://github\.com/(?:[\w.-]+)/([\w.-]+)/(?:issues|pull)/(\d+)", problem.link)
        links.append(
            f"[{thread[1]}#{thread[2]}]({problem.link})" if thread else f"[JAX's documentation]({problem.link})"
        )
    yield " · ".join(links)


def anchor(heading: str) -> str:
    """Return the anchor that MyST generates for a lesson's heading on the site."""
    text = DIFFICULTY.sub(lambda level: level[0].replace(" ", ""), heading).replace("`", "")
    return re.sub(r"[^\w\-]", "", text.lower().replace(" ", "-"))


@cache
def page_data() -> dict[str, Any]:
    """Return the data for site/_static/problems.js: the problems and the parameters of the search."""
    return {
        "weights": WEIGHTS,
        "lengthPenalty": LENGTH_PENALTY,
        "suffixes": SUFFIXES.pattern,
        "doubled": DOUBLED.pattern,
        "synonyms": synonyms(),
        "common": sorted(common_words()),
        "wildcard": WILDCARD,
        "problems": [
            {"id": problem.id, **{field: getattr(problem, field) for field in WEIGHTS}} for problem in all_problems()
        ],
    }
