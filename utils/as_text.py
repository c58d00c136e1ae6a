"""A function of the lesson as a program's text, with what it names."""

from __future__ import annotations

import ast
import inspect
import pickle
import re
import symtable
import sys
import textwrap
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import ModuleType
from typing import Any


def as_text(function: Callable, args: Sequence[Any] = ()) -> str:
    """A program that calls the function: its source, and what it names. Raises ValueError where that cannot be had."""
    parts: dict[str, str] = {}
    name = _add(function, parts)
    values = ", ".join(_value(arg, f"argument {i}") for i, arg in enumerate(args))
    return "\n\n".join([*parts.values(), f"{name}({values})\n"])


def _add(function: Any, parts: dict[str, str]) -> str:
    """Put the source of a function or class, after what it names, into the parts; its name."""
    plain = inspect.unwrap(function)
    name = getattr(plain, "__name__", "")
    if not name.isidentifier() or "<" in plain.__qualname__:
        raise ValueError(f"{name or function} has no name at the top of the lesson: begin it there with def")
    source = ""
    with suppress(OSError, TypeError):
        source = textwrap.dedent(inspect.getsource(plain))
    if not re.search(rf"^(async )?(def|class) {name}\b", source, re.M):  # Python 3.13 may take what `-c` ran for it
        raise ValueError(f"the source of {name} is not to be had: give the program as text")
    parts[name] = ""  # begun: it may name itself
    names = _from_outside(symtable.symtable(source, "", "exec"))
    known = vars(sys.modules[plain.__module__])
    for other in sorted(names & set(known) - set(parts)):
        value = known[other]
        if isinstance(value, ModuleType):
            parts[other] = f"import {value.__name__} as {other}"
        elif hasattr(inspect.unwrap(value) if callable(value) else value, "__qualname__"):
            home = inspect.unwrap(value).__module__
            if home == plain.__module__ and inspect.unwrap(value).__name__ == other:
                _add(value, parts)
            else:
                parts[other] = f"from {home} import {value.__name__} as {other}"
        else:
            parts[other] = f"{other} = {_value(value, other)}"
    parts[name] = parts.pop(name) or source  # behind what it names
    return name


def _from_outside(table: symtable.SymbolTable) -> set[str]:
    """The names that a source takes from around it: what a function makes for itself is none of them."""
    whole = table.get_type() == "module"
    found = {s.get_name() for s in table.get_symbols() if s.is_referenced() and (whole or s.is_global())}
    return found.union(*map(_from_outside, table.get_children()))


def _value(value: Any, name: str) -> str:
    """An expression for it."""
    with suppress(ValueError, SyntaxError):
        if ast.literal_eval(repr(value)) == value:
            return repr(value)
    try:
        return f"__import__('pickle').loads({pickle.dumps(value)!r})"
    except Exception as error:
        raise ValueError(f"{name} cannot be sent to another process ({error}): make it inside the function") from error
