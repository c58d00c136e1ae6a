"""Collect the data for the site's page on old code: the rows, phrases and names that the migration checker knows.

Only names that the newest JAX has removed or deprecated are included. A name that shares the status of its module or
class is omitted, because the page looks up the module or class instead.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from find_old_jax.error_lookup import KEYWORD_PATTERN, NAME_PATTERNS
from find_old_jax.find import advice
from find_old_jax.old_apis import PHRASES, ROWS, WORDS
from find_old_jax.program import CONVENTIONAL
from find_old_jax.release_names import Record
from find_old_jax.replacements import KEYWORDS, REPLACEMENTS

from tools.lessons import notebooks

# A name that has a different meaning in current JAX is old only if an error message contains it.
GONE, WARNS, ONLY_IN_MESSAGES = "gone", "warns", ""


@cache
def page_data() -> dict[str, Any]:
    """Return all the data that site/_static/old_code.js uses."""
    record = Record()
    return {
        "newest": record.version,
        "appendix": f"notebooks/{notebooks.lesson('90').stem}.html",
        "rows": {number: [row.old_apis[0].text, row.new] for number, row in ROWS.items()},
        "phrases": [
            *([row, phrase.split(" ... ")] for row, phrases in PHRASES.items() for phrase in phrases),
            *([row, phrase.split(" ... "), old, new] for phrase, (old, new, row) in WORDS.items()),
        ],
        "named": [pattern.pattern.replace("(?P<", "(?<") for pattern in NAME_PATTERNS],
        "keyword": KEYWORD_PATTERN.pattern,
        "keywords": [
            [name, keyword, new, row, _keyword_state(record, name, keyword, row)]
            for (name, keyword), (new, row) in KEYWORDS.items()
        ],
        "names": names_by_holder(record),
        "conventional": CONVENTIONAL,
        "not_modules": [name for name in sorted(REPLACEMENTS) if _is_gone_as_module(record, name)],
    }


def names_by_holder(record: Record) -> dict[str, dict[str, list[Any]]]:
    """Return the old names, grouped by the module or class that contains them.

    The value of a name is [state, last release that had it, replacement, row], followed by the old part if only a part
    of the name is old.
    """
    entries: dict[str, list[Any]] = {}
    by_holder: dict[str, dict[str, list[Any]]] = {}
    for name in sorted(all_names(record)):
        status = record.status(name)
        if status.state not in (GONE, WARNS) and name not in REPLACEMENTS:
            continue
        old, new, row = advice(record, status, name)
        state = (
            status.state if status.state in (GONE, WARNS) else GONE if not name.startswith("jax.") else ONLY_IN_MESSAGES
        )
        holder, _, leaf = name.rpartition(".")
        entries[name] = [state, status.last, new, row, *([old] if old != name else [])]
        if old == name or entries[old][2:4] != [
            new,
            row,
        ]:  # the entry of its module or class comes first, because the names are sorted
            by_holder.setdefault(holder, {})[leaf] = entries[name]
    return by_holder


def all_names(record: Record) -> Iterator[str]:
    """Yield every dotted name in a recorded JAX release or in the checker's replacements."""
    yield from {*REPLACEMENTS, *record.all_names()}


def _keyword_state(record: Record, name: str, keyword: str, row: int) -> str:
    """Return 'gone' or 'warns' for a keyword in the newest JAX, or "" if it's accepted or its function is unknown."""
    call = record.call(name)
    if call is not None and not call.any_keyword and keyword not in call.keywords:
        return GONE
    return WARNS if row == 15 or (call is not None and keyword in call.warned) else ONLY_IN_MESSAGES


def _is_gone_as_module(record: Record, name: str) -> bool:
    return record.status(name).state == "works" and record.status(name, as_module=True).state == GONE


def page_json() -> str:
    """Return the page's data as compact JSON."""
    return json.dumps(page_data(), ensure_ascii=False, separators=(",", ":"))
