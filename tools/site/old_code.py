"""What the site's page on old code knows: the finder's rows, phrases and names, as data. heads.py puts it there.

Of the record it takes only what is gone, or warns, on the newest JAX; names that share the fate of what holds them are
left out, and the page looks up the holder instead.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from old_jax.find import advice
from old_jax.forms import PHRASES, ROWS, WORDS
from old_jax.message import KEYWORD, NAMED
from old_jax.moved import KEYWORDS, MOVED
from old_jax.record import Record
from tools.lessons import notebooks

GONE, WARNS, ONLY_SAID = "gone", "warns", ""  # the last: today a name of something else, old only in a message


@cache
def data() -> dict[str, Any]:
    """All that the page is given; site/_static/old_code.js reads it."""
    record = Record()
    return {
        "newest": record.version,
        "appendix": f"notebooks/{notebooks.lesson('90').stem}.html",
        "rows": {number: [row.forms[0].text, row.new] for number, row in ROWS.items()},
        "phrases": [
            *([row, phrase.split(" ... ")] for row, phrases in PHRASES.items() for phrase in phrases),
            *([row, phrase.split(" ... "), old, new] for phrase, (old, new, row) in WORDS.items()),
        ],
        "named": [pattern.pattern.replace("(?P<", "(?<") for pattern in NAMED],
        "keyword": KEYWORD.pattern,
        "keywords": [
            [name, keyword, new, row, _taken(record, name, keyword, row)]
            for (name, keyword), (new, row) in KEYWORDS.items()
        ],
        "names": names(record),
        "not_modules": [name for name in sorted(MOVED) if _is_no_module(record, name)],
    }


def names(record: Record) -> dict[str, dict[str, list[Any]]]:
    """By what holds them, the names that are old: [state, the last release that had it, new form, row], and what is
    old of the name, where that is not the whole."""
    told: dict[str, list[Any]] = {}
    found: dict[str, dict[str, list[Any]]] = {}
    for name in sorted(known(record)):
        fate = record.fate(name)
        if fate.state not in (GONE, WARNS) and name not in MOVED:
            continue
        old, new, row = advice(record, fate, name)
        state = fate.state if fate.state in (GONE, WARNS) else GONE if not name.startswith("jax.") else ONLY_SAID
        holder, _, leaf = name.rpartition(".")
        told[name] = [state, fate.last, new, row, *([old] if old != name else [])]
        if old == name or told[old][2:4] != [new, row]:  # what holds it comes first in the order
            found.setdefault(holder, {})[leaf] = told[name]
    return found


def known(record: Record) -> Iterator[str]:
    """Every dotted name that a recorded JAX had, or that a row names."""
    yield from {*MOVED, *record.everything()}


def _taken(record: Record, name: str, keyword: str, row: int) -> str:
    """'gone' or 'warns': what becomes of a keyword today; '' where the function takes it, or is not recorded."""
    call = record.call(name)
    if call is not None and not call.any_keyword and keyword not in call.keywords:
        return GONE
    return WARNS if row == 15 or (call is not None and keyword in call.warned) else ONLY_SAID


def _is_no_module(record: Record, name: str) -> bool:
    return record.fate(name).state == "works" and record.fate(name, as_module=True).state == GONE


def text() -> str:
    """The data as JSON, without a space that nothing needs."""
    return json.dumps(data(), ensure_ascii=False, separators=(",", ":"))
