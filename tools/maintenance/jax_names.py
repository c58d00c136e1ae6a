"""Record which public names, keywords and options each JAX release has, in the migration checker's names.json.

usage: PYTHON tools/maintenance/jax_names.py dump > V.json           inspect the JAX installed for PYTHON (3.9 or newer)
       PYTHON tools/maintenance/jax_names.py read FOLDER V > V.json  read names from the source of a JAX too old to run
       python -m tools.maintenance.jax_names add V.json...           add releases to the record

In a given release, a name may work, cause a deprecation warning, or raise an error about its removal. The record
contains only names that some release has.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import pkgutil
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RECORD = Path(__file__).parents[2] / "packages" / "find-old-jax" / "src" / "find_old_jax" / "names.json"
PUBLIC = re.compile(r"jax(\.[a-z]\w*)*$", re.I)
EXCLUDED = re.compile(
    r"jax\.(extend\.mlir|experimental\.mosaic)\.|.*\.(tests?|examples)\b"
)  # generated modules, and modules that aren't for users
WITHOUT_SIGNATURES = re.compile(r"jax\.(lib|experimental\.(mosaic|pallas|key_reuse|array_api|jax2tf))\b")
OLDEST_WITH_SIGNATURES = (0, 7, 2)  # the oldest JAX that the checker can target, so older signatures aren't needed


def dump() -> dict:
    """Inspect the installed JAX, and return its version, its modules, and the "options" of jax.config.

    Each module has "names", "calls", "warns" and "gone" or, if it can't be imported, "names" and "read".
    """
    import jax

    warnings.simplefilter("ignore")
    by_module = {}
    for name in modules(Path(jax.__file__).parent):
        try:
            with warnings.catch_warnings(record=True) as caught_warnings:
                warnings.simplefilter("always")
                module = importlib.import_module(name)
        except BaseException:  # the module needs TensorFlow or a GPU, or raises its own deprecation error
            path = Path(jax.__file__).parent.joinpath(*name.split(".")[1:])
            source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
            by_module[name] = {"names": read_names(source), "read": True}
            continue
        by_module[name] = describe_module(module)
        above, _, last = name.rpartition(".")
        for warning in caught_warnings:
            if name in str(warning.message) and "deprecated" in str(warning.message):  # in any category
                by_module[above].setdefault("warns", {})[last] = str(warning.message)
    options = getattr(jax.config, "values", None) or getattr(jax.config, "_value_holders", {})
    return {"version": jax.__version__, "modules": by_module, "options": sorted(options)}


def modules(root: Path) -> list[str]:
    """Return the dotted names of the public modules in JAX's folder, without tests."""
    names = ["jax"]
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        name = ".".join(("jax", *parts))
        if parts and PUBLIC.match(name) and not EXCLUDED.match(name):
            names.append(name)
    for module in pkgutil.iter_modules([str(root)]):  # include compiled modules
        names += [f"jax.{module.name}"] if PUBLIC.match(f"jax.{module.name}") else []
    return sorted(set(names))


def describe_module(module) -> dict:
    """Return the "names", "calls", "warns" and "gone" of an imported module, as in the result of `dump`."""
    messages = {}
    for key, value in vars(module).items():
        if re.match(r"_\w*deprecat\w*$", key) and isinstance(value, dict):
            messages.update({n: v for n, v in value.items() if isinstance(v, tuple) and len(v) == 2})
    warns = {n: text for n, (text, value) in messages.items() if value is not None}
    gone = {n: text for n, (text, value) in messages.items() if value is None}
    names, calls = [], {}
    for name in sorted(set(vars(module)) | set(dir(module)) | set(warns)):
        if name.startswith("_") or name in gone:
            continue
        try:
            value = getattr(module, name)
        except Exception as error:
            if isinstance(error, AttributeError) and "deprecated" in str(error):
                gone[name] = str(error)
            continue
        names.append(name)
        text = signature(value)
        if text is not None and not WITHOUT_SIGNATURES.match(module.__name__):
            calls[name] = text
    return {"names": names, "calls": calls, "warns": warns, "gone": gone}


def signature(value) -> str | None:
    """Return a signature such as '2 a b c': the number of positional arguments, and the names of all arguments.

    `*` means any number, `**` means any name, and `!` after a name means that using it causes a warning. Return None if
    the value isn't callable, has no signature, or accepts any arguments.
    """
    if not callable(value) or inspect.ismodule(value):
        return None
    try:
        parameters = inspect.signature(value).parameters.values()
    except (ValueError, TypeError):
        return None
    kinds = inspect.Parameter
    positional = sum(p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD) for p in parameters)
    fields = ["*" if any(p.kind == kinds.VAR_POSITIONAL for p in parameters) else str(positional)]
    for p in parameters:
        if p.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY):
            fields.append(p.name + "!" * (type(p.default).__name__ == "DeprecatedArg"))
        elif p.kind == kinds.VAR_KEYWORD:
            fields.append("**")
    return None if fields[0] == "*" and fields[-1] == "**" else " ".join(fields)


def read(root: Path, version: str) -> dict:
    """Read a JAX version's public names from its source, without running it, and return them as `dump` does."""
    by_module = {}
    for name in modules(root):
        path = root.joinpath(*name.split(".")[1:])
        source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if source.exists():
            by_module[name] = {"names": sorted({*read_names(source), *submodules(path)})}
    return {"version": version, "modules": by_module, "options": []}


def submodules(folder: Path) -> list[str]:
    """Return the names of the modules and packages in a package's folder."""
    return [path.stem for path in folder.glob("[a-z]*") if path.suffix == ".py" or (path / "__init__.py").exists()]


def read_names(source: Path) -> list[str]:
    """Return the public names that a source file binds at its top level."""
    names = set()
    try:
        tree = ast.parse(source.read_text(encoding="utf-8"))
    except (SyntaxError, OSError):
        return []
    body = list(tree.body)
    while body:
        node = body.pop()
        if isinstance(node, (ast.Try, ast.If, ast.With)):
            body += [
                *node.body,
                *getattr(node, "orelse", []),
                *(n for h in getattr(node, "handlers", []) for n in h.body),
            ]
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            own = getattr(node, "level", 0) or (getattr(node, "module", None) or node.names[0].name).startswith("jax")
            names |= {(a.asname or a.name).split(".")[0] for a in node.names if own}
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
    return sorted(name for name in names if not name.startswith("_") and name != "*")


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", version))


def merge(dumps: list[dict]) -> dict:
    """Merge the results of `dump` into one record, which lists names by module and by the versions that have them."""
    dumps = sorted(dumps, key=lambda dump_: numbers(dump_["version"]))
    versions = [dump_["version"] for dump_ in dumps]
    signed = [i for i, v in enumerate(versions) if numbers(v) >= OLDEST_WITH_SIGNATURES]
    record = {"versions": versions, "modules": {}, "options": spans([set(dump_["options"]) for dump_ in dumps])}
    for module in sorted({name for dump_ in dumps for name in dump_["modules"]}):
        module_entries = [dump_["modules"].get(module) for dump_ in dumps]
        entry: dict[str, Any] = {"in": spans([{"x"} if dump_ else set() for dump_ in module_entries]).popitem()[0]}
        entry["names"] = spans([set(dump_["names"]) if dump_ else set() for dump_ in module_entries])
        if module_entries[-1] and module_entries[-1].get("read"):
            entry["read"] = True  # names read from the newest version's source may be incomplete
        messages: dict[str, str] = {}
        for kind in ("warns", "gone"):
            entry[kind] = spans([set((dump_ or {}).get(kind, {})) for dump_ in module_entries])
            for dump_ in module_entries:
                messages |= {name: " ".join(text.split()) for name, text in ((dump_ or {}).get(kind) or {}).items()}
        entry["messages"] = dict(sorted(messages.items()))  # the newest message about each name
        entry["calls"] = {}
        for span, texts in spans(
            [_encode_signatures((module_entries[i] or {}).get("calls", {})) for i in signed], signed
        ).items():
            entry["calls"][span] = texts
        record["modules"][module] = {key: value for key, value in entry.items() if value}
    return record


def split_by_version(record: dict) -> list[dict]:
    """Split a record into the result of `dump` for each version. This is the inverse of `merge`."""
    dumps = [{"version": v, "modules": {}, "options": []} for v in record["versions"]]
    for i, items in _expand_spans(record["options"]):
        dumps[i]["options"] += items
    for name, entry in record["modules"].items():
        for i, _ in _expand_spans({entry["in"]: ""}):
            dumps[i]["modules"][name] = {"names": [], "calls": {}, "warns": {}, "gone": {}}
        for i, items in _expand_spans(entry.get("names", {})):
            dumps[i]["modules"][name]["names"] += items
        for kind in ("warns", "gone"):
            for i, items in _expand_spans(entry.get(kind, {})):
                dumps[i]["modules"][name][kind] |= {item: entry["messages"][item] for item in items}
        for i, items in _expand_spans(entry.get("calls", {})):
            calls = (item.removesuffix(")").partition("(") for item in items)
            dumps[i]["modules"][name]["calls"] |= {function: text.replace(",", " ") for function, _, text in calls}
        if entry.get("read"):
            dumps[-1]["modules"][name]["read"] = True
    return dumps


def _expand_spans(by_span: dict[str, str]) -> Iterator[tuple[int, list[str]]]:
    for span, items in by_span.items():
        for interval in span.split(","):
            first, _, last = interval.partition("-")
            for i in range(int(first), int(last or first) + 1):
                yield i, items.split()


def _encode_signatures(calls: dict[str, str]) -> set[str]:
    return {f"{name}({text.replace(' ', ',')})" for name, text in calls.items()}


def spans(sets: list[set[str]], positions: list[int] | None = None) -> dict[str, str]:
    """Group items by the sets that contain them: '0-4,6' is the key of the items in sets 0 to 4 and 6."""
    positions = positions or list(range(len(sets)))
    by_span: dict[str, list[str]] = {}
    for item in sorted(set().union(*sets)):
        present = [position for position, set_ in zip(positions, sets, strict=True) if item in set_]
        intervals, start = [], present[0]
        for i, j in zip(present, [*present[1:], -1], strict=True):
            if j != i + 1:
                intervals.append(f"{start}-{i}" if start != i else f"{i}")
                start = j
        by_span.setdefault(",".join(intervals), []).append(item)
    return {span: " ".join(words) for span, words in by_span.items()}


def record_text(record: dict) -> str:
    """Return the record as JSON, with one line per module."""
    lines = [f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in record["modules"].items()]
    head = json.dumps({"versions": record["versions"], "options": record["options"]})[:-1]
    return f'{head}, "modules": {{\n' + ",\n".join(lines) + "\n}}\n"


def main(arguments: list[str]) -> int:
    command, *options = arguments or [""]
    if command == "dump":
        json.dump(dump(), sys.stdout)
    elif command == "read":
        json.dump(read(Path(options[0]), options[1]), sys.stdout)
    elif command == "add" and options:
        dumps = [json.loads(Path(path).read_text(encoding="utf-8")) for path in options]
        recorded = split_by_version(json.loads(RECORD.read_text(encoding="utf-8"))) if RECORD.exists() else []
        versions = {dump_["version"] for dump_ in dumps}
        RECORD.write_text(
            record_text(merge([*(dump_ for dump_ in recorded if dump_["version"] not in versions), *dumps])),
            encoding="utf-8",
        )
    else:
        print((__doc__ or "").split("\n\n")[1], file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
