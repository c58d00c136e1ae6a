"""Parse the glossary, site/glossary.md, and find the first use of each entry in a text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tools.lessons.notebooks import ROOT

GLOSSARY = ROOT / "site" / "glossary.md"
HAN = re.compile(r"[\u4e00-\u9fff]")


@dataclass(frozen=True)
class Entry:
    """A term, with the `forms` to look for in a text, and the `lessons` to look for them in (None: all)."""

    term: str
    simplified: str
    traditional: str
    forms: tuple[str, ...]
    lessons: frozenset[str] | None
    definition: str

    def counts_in(self, lesson: str) -> bool:
        """Return whether to look for the forms in a lesson, given by its number."""
        return self.lessons is None or lesson in self.lessons


def read(path: Path = GLOSSARY) -> list[Entry]:
    """Return the entries in page order. Raises ValueError, with the term, if part of an entry is missing."""
    _, *sections = re.split(r"^## ", path.read_text(encoding="utf-8"), flags=re.M)
    return [_entry(section) for section in sections]


def _entry(section: str) -> Entry:
    """Parse a section: the term, a line `simplified · traditional · *other, forms* · in 01, 02`, and the definition."""
    parts = [part.strip() for part in section.split("\n\n") if part.strip()]
    if len(parts) != 3:
        raise ValueError(f"{parts[0]!r} needs a line of Chinese terms and one paragraph of definition")
    term, line, definition = parts
    (simplified, traditional), other_forms, lessons = names(line, term)
    return Entry(term, simplified, traditional, (term, *other_forms), lessons, " ".join(definition.split()))


def names(line: str, term: str) -> tuple[list[str], tuple[str, ...], frozenset[str] | None]:
    """Return the two Chinese terms, the other forms and the lessons that an entry's second line specifies.

    Raises ValueError, with the term, if a Chinese term is missing or a part has an unknown form.
    """
    first, *parts = (part.strip() for part in line.split("·"))
    chinese = [first, *parts[:1]]
    if len(chinese) != 2 or not all(map(HAN.search, chinese)):
        raise ValueError(f"{term!r} needs its Chinese term in both scripts, simplified · traditional; it has {line!r}")
    other_forms, lessons = (), None
    for part in parts[1:]:
        if part.startswith("*"):
            other_forms = tuple(form.strip() for form in part.strip("*").split(","))
        elif part.startswith("in "):
            lessons = frozenset(lesson.strip() for lesson in part[3:].split(","))
        else:
            raise ValueError(f"{term!r}: expected *other forms* or 'in 01, 02'; got {part!r}")
    return chinese, other_forms, lessons


def identifier(term: str) -> str:
    """Return the anchor of a term's entry, which is the same on GitHub and on the site."""
    return re.sub(r"[^a-z0-9]+", "-", term.lower()).strip("-")


def first_uses(text: str, entries: Iterable[Entry]) -> list[tuple[int, int, Entry]]:
    """Return the start, end and entry of each entry's first use in a text, in text order. The longest form wins.

    A use is a complete word, including hyphens: 'meshwork' isn't a use of 'mesh', nor 'all-reduce' one of 'reduce'. A
    form may begin with a capital letter, as at the start of a sentence.
    """
    owner = {}
    for entry in entries:
        for form in entry.forms:
            owner |= {form: entry, form[0].upper() + form[1:]: entry}
    if not owner:
        return []
    forms = sorted(owner, key=len, reverse=True)
    alternatives = "|".join(re.escape(form).replace(r"\ ", r"\s+") for form in forms)
    uses, seen_terms = [], set()
    for use in re.finditer(rf"(?<![\w-])({alternatives})(?![\w-])", text):
        entry = owner[" ".join(use[1].split())]
        if entry not in seen_terms:
            seen_terms.add(entry)
            uses.append((use.start(), use.end(), entry))
    return uses
