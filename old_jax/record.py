"""What each JAX has: names, keywords and options, as tools/upkeep/jax_names.py recorded them in names.json."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

OPAQUE = ("jax.extend.mlir.", "jax.experimental.mosaic.")  # below these, nothing was recorded
ROOMS = re.compile(  # where people look for a name today
    r"jax(\.(numpy|lax|nn|tree|tree_util|sharding|random|dtypes|errors|stages|export|ad_checkpoint|custom_batching"
    r"|experimental|(example_libraries|extend)(\.\w+)?))?$"
)
WHEN_CALLED = {"jax.host_id", "jax.host_ids", "jax.host_count"}  # they warn of themselves when they are called alone
CONFIG = {  # what jax.config has besides its options, from 0.7.2 to 0.12
    "add_option", "complete_absl_config", "config_with_absl", "meta", "parse_flags_with_absl", "read", "update",
    "use_absl", "values", "x64_enabled",
}  # fmt: skip
OLDEST = (0, 7, 2)  # the oldest version that one may ask for


def numbers(version: str) -> tuple[int, ...]:
    """(0, 12, 0, 1) for '0.12.0.1'."""
    return tuple(int(number) for number in re.findall(r"\d+", version))


@dataclass(frozen=True)
class Fate:
    """What becomes of a dotted name on a version of JAX."""

    state: str  # 'works', 'warns', 'gone', or 'unknown': not JAX's, private, or not recorded
    name: str = ""  # the part of the dotted name that this is about
    said: str = ""  # JAX's own words
    last: str = ""  # the last recorded version that had it before it went; '' where none did
    first: str = ""  # where it only came later: the first recorded version that has it


class Call(NamedTuple):
    """What may be handed to a function of JAX."""

    places: float  # arguments by position
    keywords: frozenset[str]
    warned: frozenset[str]  # keywords of which JAX warns
    any_keyword: bool


class Record:
    """The record, read for one version: the newest, or the newest recorded one that begins like `target` ('0.12').

    Raises ValueError where the record has no such version, or one too old to ask for.
    """

    def __init__(self, target: str | None = None) -> None:
        whole = _load()
        self.versions: list[str] = whole["versions"]
        self.at = len(self.versions) - 1 if target is None else self._position(target)
        self.version = self.versions[self.at]
        self._modules, self._options = whole["modules"], whole["options"]
        self._names: dict[tuple[str, str], dict[str, tuple[int, ...]]] = {}

    def _position(self, target: str) -> int:
        asked = numbers(target)
        askable = [i for i, version in enumerate(self.versions) if numbers(version) >= OLDEST]
        begin = [i for i in askable if numbers(self.versions[i])[: len(asked)] == asked]
        near = [i for i in askable if numbers(self.versions[i])[:2] == asked[:2]]
        if begin or near:
            return (begin or near)[-1]
        raise ValueError(f"no record of JAX {target}; there is {', '.join(self.versions[i] for i in askable)}")

    def _table(self, module: str, kind: str) -> dict[str, tuple[int, ...]]:
        """By name, the positions of the versions that have it in a module (or warn of it, or tell that it is gone)."""
        if (module, kind) not in self._names:
            spans = self._modules.get(module, {}).get(kind, {})
            self._names[module, kind] = {
                name: _positions(span) for span, names in spans.items() for name in names.split()
            }
        return self._names[module, kind]

    def is_module(self, name: str) -> bool:
        """Is this a module of the version?"""
        return name in self._modules and self.at in _positions(self._modules[name]["in"])

    def had_module(self, name: str) -> bool:
        """Is this a module of any recorded version?"""
        return name in self._modules

    def names(self, module: str) -> set[str]:
        """The public names of a module of the version: what `from module import *` may bring."""
        return {name for name, at in self._table(module, "names").items() if self.at in at}

    def everything(self) -> set[str]:
        """Each dotted name that a recorded version has, or warns of."""
        tables = ((module, self._table(module, kind)) for module in self._modules for kind in ("names", "warns"))
        return {*self._modules, *(f"{module}.{name}" for module, table in tables for name in table)}

    def fate(self, dotted: str, *, as_module: bool = False) -> Fate:
        """What becomes of `jax.a.b.c` on the version; `as_module`: of `import jax.a.b.c`, all of it modules."""
        parts = dotted.split(".")
        if parts[0] != "jax":
            return Fate("unknown")
        module = "jax"
        for part in parts[1:]:
            full = f"{module}.{part}"
            if part.startswith("_") or full.startswith(OPAQUE) or self._modules[module].get("read"):
                return Fate("unknown")
            if self.at in self._table(module, "warns").get(part, ()):
                return Fate("warns", full, self._modules[module]["said"].get(part, ""))
            if full in WHEN_CALLED and self.at in self._table(module, "names")[part]:
                return Fate("warns", full)
            if (
                full == "jax.config"
                and dotted != full
                and not as_module
                and self.at in self._table("jax", "names")[part]
            ):
                return self._of_config(dotted.split(".")[2])
            if self.is_module(full):
                module = full
            elif self.at in self._table(module, "names").get(part, ()) and not as_module:
                return Fate("works", full)
            else:
                return self._gone(module, part, as_module)
        return Fate("works", dotted)

    def _of_config(self, name: str) -> Fate:
        option, full = self.option(name), f"jax.config.{name}"
        if name in CONFIG or option.state == "works":
            return Fate("works", full)
        return Fate("unknown") if name.startswith("_") else Fate("gone", full, last=option.last)

    def _gone(self, module: str, part: str, as_module: bool) -> Fate:
        full = f"{module}.{part}"
        at = set(_positions(self._modules[full]["in"])) if full in self._modules else set()
        if not as_module:
            at |= set(self._table(module, "names").get(part, ()))
        before = [i for i in at if i < self.at]
        after = [i for i in at if i > self.at]
        said = self._modules[module].get("said", {}).get(part, "")
        return Fate(
            "gone",
            full,
            said,
            self.versions[max(before)] if before else "",
            self.versions[min(after)] if after and not before else "",
        )

    def span(self, dotted: str) -> tuple[str, str]:
        """The first and the last recorded version, of all, that have a dotted name; two empty texts where none has."""
        module, _, name = dotted.rpartition(".")
        at = self._table(module, "names").get(name, ()) if self.had_module(module) else ()
        at = {*at, *(_positions(self._modules[dotted]["in"]) if self.had_module(dotted) else ())}
        return (self.versions[min(at)], self.versions[max(at)]) if at else ("", "")

    @cached_property
    def _leaves(self) -> dict[str, list[str]]:
        """By its last part, the dotted names of the version."""
        found: dict[str, list[str]] = {}
        for module in self._modules:
            if self.is_module(module) and not module.startswith(OPAQUE):
                found.setdefault(module.rsplit(".", 1)[-1], []).append(module)
                for name in self.names(module):
                    found.setdefault(name, []).append(f"{module}.{name}")
        return found

    def elsewhere(self, dotted: str) -> str:
        """Where the version has something of the same name as one that is gone; '' where nowhere. A hint, no proof."""
        leaf = dotted.rsplit(".", 1)[-1]
        room = dotted.split(".")[1] if dotted.count(".") else ""
        found = [
            name
            for name in self._leaves.get(leaf, [])
            if ROOMS.match(name.rpartition(".")[0]) and self.fate(name).state == "works"
        ]
        return min(found, key=lambda name: (name.split(".")[1] != room, name.count("."), name), default="")

    def call(self, dotted: str) -> Call | None:
        """What may be handed to a function of the version; None where that is not recorded."""
        module, _, name = dotted.rpartition(".")
        text = self._calls(module).get(name)
        if text is None:
            return None
        places, *words = text.split(",")
        keywords = [word for word in words if word != "**"]
        return Call(
            float("inf") if places == "*" else int(places),
            frozenset(word.rstrip("!") for word in keywords),
            frozenset(word[:-1] for word in keywords if word.endswith("!")),
            "**" in words,
        )

    @cache  # noqa: B019  (one record a run)
    def _calls(self, module: str) -> dict[str, str]:
        spans = self._modules.get(module, {}).get("calls", {})
        texts = (text for span, texts in spans.items() if self.at in _positions(span) for text in texts.split())
        return {name: rest.removesuffix(")") for name, _, rest in (text.partition("(") for text in texts)}

    def option(self, name: str) -> Fate:
        """What becomes of `jax.config.update(name, ...)`. What no version has is not JAX's to name."""
        for span, names in self._options.items():
            if name in names.split():
                at = _positions(span)
                before = [i for i in at if i < self.at]
                if self.at in at or not before:
                    return Fate("works", name)
                return Fate("gone", name, last=self.versions[max(before)])
        return Fate("unknown")


@cache
def _load() -> dict[str, Any]:
    return json.loads(Path(__file__).with_name("names.json").read_text(encoding="utf-8"))


@cache
def _positions(span: str) -> tuple[int, ...]:
    """(0, 1, 2, 5) for '0-2,5'."""
    found: list[int] = []
    for part in span.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return tuple(found)
