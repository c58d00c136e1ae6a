"""Look up the names, keywords and options of each JAX version in names.json.

tools/maintenance/jax_names.py writes that file.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

UNRECORDED = ("jax.extend.mlir.", "jax.experimental.mosaic.")  # the contents of these modules weren't recorded
SEARCHED_MODULES = re.compile(  # the modules to search for the new location of a removed name
    r"jax(\.(numpy|lax|nn|tree|tree_util|sharding|random|dtypes|errors|stages|export|ad_checkpoint|custom_batching"
    r"|experimental|(example_libraries|extend)(\.\w+)?))?$"
)
WHEN_CALLED = {"jax.host_id", "jax.host_ids", "jax.host_count"}  # names that JAX warns about only when they're called
CONFIG = {  # attributes of jax.config that aren't options, in JAX 0.7.2 to 0.12
    "add_option", "complete_absl_config", "config_with_absl", "meta", "parse_flags_with_absl", "read", "update",
    "use_absl", "values", "x64_enabled",
}  # fmt: skip
OLDEST = (0, 7, 2)  # the oldest JAX version that's accepted as a target


def parse_version(version: str) -> tuple[int, ...]:
    """Parse a version into integers: (0, 12, 0, 1) for '0.12.0.1'."""
    return tuple(int(number) for number in re.findall(r"\d+", version))


@dataclass(frozen=True)
class NameStatus:
    """The state of a dotted name in one JAX version."""

    state: str  # 'works', 'warns', 'gone', or 'unknown': not part of JAX, private, or not recorded
    name: str = ""  # the leading part of the dotted name that this state applies to
    message: str = ""  # JAX's own message about the name, or ""
    last: str = ""  # the last recorded version that had the name before it was removed, or ""
    first: str = ""  # the first recorded version that has the name, if only newer versions do, or ""


class Call(NamedTuple):
    """The arguments that a JAX function accepts."""

    max_positional: float  # the maximum number of positional arguments
    keywords: frozenset[str]
    warned: frozenset[str]  # keywords that JAX warns about
    any_keyword: bool


class Record:
    """The recorded API of one JAX version.

    The version is the newest recorded one that begins with `target`, such as '0.12', or else the newest one with the
    same first two numbers. Without a target, it's the newest one of all.

    Raises ValueError if no recorded version matches the target, or if only versions older than OLDEST do.
    """

    def __init__(self, target: str | None = None) -> None:
        recorded = _load()
        self.versions: list[str] = recorded["versions"]
        self.version_index = len(self.versions) - 1 if target is None else self._find_version_index(target)
        self.version = self.versions[self.version_index]
        self._modules, self._options = recorded["modules"], recorded["options"]
        self._names: dict[tuple[str, str], dict[str, tuple[int, ...]]] = {}

    def _find_version_index(self, target: str) -> int:
        wanted_numbers = parse_version(target)
        supported = [i for i, version in enumerate(self.versions) if parse_version(version) >= OLDEST]
        begin = [i for i in supported if parse_version(self.versions[i])[: len(wanted_numbers)] == wanted_numbers]
        near = [i for i in supported if parse_version(self.versions[i])[:2] == wanted_numbers[:2]]
        if begin or near:
            return (begin or near)[-1]
        raise ValueError(f"no record of JAX {target}; choose from {', '.join(self.versions[i] for i in supported)}")

    def _table(self, module: str, kind: str) -> dict[str, tuple[int, ...]]:
        """Map each of a module's names to the versions that provide it ("names") or warn about it ("warns").

        The versions are given by their positions in the record.
        """
        if (module, kind) not in self._names:
            spans = self._modules.get(module, {}).get(kind, {})
            self._names[module, kind] = {
                name: _parse_span(span) for span, names in spans.items() for name in names.split()
            }
        return self._names[module, kind]

    def is_module(self, name: str) -> bool:
        """Return whether a dotted name is a module in this version."""
        return name in self._modules and self.version_index in _parse_span(self._modules[name]["in"])

    def is_module_in_any_version(self, name: str) -> bool:
        """Return whether a dotted name is a module in any recorded version."""
        return name in self._modules

    def names(self, module: str) -> set[str]:
        """Return a module's public names in this version, all of which `from module import *` may import."""
        return {name for name, versions in self._table(module, "names").items() if self.version_index in versions}

    def all_names(self) -> set[str]:
        """Return every dotted name that any recorded version provides or warns about."""
        tables = ((module, self._table(module, kind)) for module in self._modules for kind in ("names", "warns"))
        return {*self._modules, *(f"{module}.{name}" for module, table in tables for name in table)}

    def status(self, dotted: str, *, as_module: bool = False) -> NameStatus:
        """Return the state of a dotted name in this version or, with `as_module`, of the module in `import jax.a.b`."""
        parts = dotted.split(".")
        if parts[0] != "jax":
            return NameStatus("unknown")
        module = "jax"
        for part in parts[1:]:
            full = f"{module}.{part}"
            if part.startswith("_") or full.startswith(UNRECORDED) or self._modules[module].get("read"):
                return NameStatus("unknown")
            if self.version_index in self._table(module, "warns").get(part, ()):
                return NameStatus("warns", full, self._modules[module]["messages"].get(part, ""))
            if full in WHEN_CALLED and self.version_index in self._table(module, "names")[part]:
                return NameStatus("warns", full)
            if (
                full == "jax.config"
                and dotted != full
                and not as_module
                and self.version_index in self._table("jax", "names")[part]
            ):
                return self._config_status(dotted.split(".")[2])
            if self.is_module(full):
                module = full
            elif self.version_index in self._table(module, "names").get(part, ()) and not as_module:
                return NameStatus("works", full)
            else:
                return self._removed_status(module, part, as_module)
        return NameStatus("works", dotted)

    def _config_status(self, name: str) -> NameStatus:
        option, full = self.option(name), f"jax.config.{name}"
        if name in CONFIG or option.state == "works":
            return NameStatus("works", full)
        return NameStatus("unknown") if name.startswith("_") else NameStatus("gone", full, last=option.last)

    def _removed_status(self, module: str, part: str, as_module: bool) -> NameStatus:
        full = f"{module}.{part}"
        positions = set(_parse_span(self._modules[full]["in"])) if full in self._modules else set()
        if not as_module:
            positions |= set(self._table(module, "names").get(part, ()))
        earlier = [i for i in positions if i < self.version_index]
        later = [i for i in positions if i > self.version_index]
        message = self._modules[module].get("messages", {}).get(part, "")
        return NameStatus(
            "gone",
            full,
            message,
            self.versions[max(earlier)] if earlier else "",
            self.versions[min(later)] if later and not earlier else "",
        )

    def span(self, dotted: str) -> tuple[str, str]:
        """Return the first and last recorded versions that have a dotted name, or two empty strings."""
        module, _, name = dotted.rpartition(".")
        positions = self._table(module, "names").get(name, ()) if self.is_module_in_any_version(module) else ()
        positions = {
            *positions,
            *(_parse_span(self._modules[dotted]["in"]) if self.is_module_in_any_version(dotted) else ()),
        }
        return (self.versions[min(positions)], self.versions[max(positions)]) if positions else ("", "")

    @cached_property
    def _names_by_last_part(self) -> dict[str, list[str]]:
        """Return this version's dotted names, grouped by their last part."""
        names: dict[str, list[str]] = {}
        for module in self._modules:
            if self.is_module(module) and not module.startswith(UNRECORDED):
                names.setdefault(module.rsplit(".", 1)[-1], []).append(module)
                for name in self.names(module):
                    names.setdefault(name, []).append(f"{module}.{name}")
        return names

    def find_elsewhere(self, dotted: str) -> str:
        """Return a dotted name in this version that has the same last part as a removed one, or "".

        The match is only a hint, because the two objects may be unrelated.
        """
        leaf = dotted.rsplit(".", 1)[-1]
        top_module = dotted.split(".")[1] if dotted.count(".") else ""
        candidates = [
            name
            for name in self._names_by_last_part.get(leaf, [])
            if SEARCHED_MODULES.match(name.rpartition(".")[0]) and self.status(name).state == "works"
        ]
        return min(candidates, key=lambda name: (name.split(".")[1] != top_module, name.count("."), name), default="")

    def call(self, dotted: str) -> Call | None:
        """Return the arguments that a function accepts in this version, or None if they aren't recorded."""
        module, _, name = dotted.rpartition(".")
        text = self._calls(module).get(name)
        if text is None:
            return None
        max_positional, *keyword_marks = text.split(",")
        keywords = [mark for mark in keyword_marks if mark != "**"]
        return Call(
            float("inf") if max_positional == "*" else int(max_positional),
            frozenset(mark.rstrip("!") for mark in keywords),
            frozenset(mark[:-1] for mark in keywords if mark.endswith("!")),
            "**" in keyword_marks,
        )

    @cache  # noqa: B019  (one record a run)
    def _calls(self, module: str) -> dict[str, str]:
        spans = self._modules.get(module, {}).get("calls", {})
        texts = (
            text for span, texts in spans.items() if self.version_index in _parse_span(span) for text in texts.split()
        )
        return {name: rest.removesuffix(")") for name, _, rest in (text.partition("(") for text in texts)}

    def option(self, name: str) -> NameStatus:
        """Return the state of a `jax.config` option in this version, or 'unknown' if no recorded version has it.

        An option that only newer versions have counts as 'works'.
        """
        for span, names in self._options.items():
            if name in names.split():
                positions = _parse_span(span)
                earlier = [i for i in positions if i < self.version_index]
                if self.version_index in positions or not earlier:
                    return NameStatus("works", name)
                return NameStatus("gone", name, last=self.versions[max(earlier)])
        return NameStatus("unknown")


@cache
def _load() -> dict[str, Any]:
    return json.loads(Path(__file__).with_name("names.json").read_text(encoding="utf-8"))


@cache
def _parse_span(span: str) -> tuple[int, ...]:
    """Parse a span of positions: (0, 1, 2, 5) for '0-2,5'."""
    positions: list[int] = []
    for part in span.split(","):
        first, _, last = part.partition("-")
        positions += range(int(first), int(last or first) + 1)
    return tuple(positions)
