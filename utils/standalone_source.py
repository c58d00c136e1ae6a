"""Convert a lesson's function, and everything that it refers to, into the source of a stand-alone program."""

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


def standalone_source(function: Callable, args: Sequence[Any] = ()) -> str:
    """Return the source of a program that calls the function with these arguments.

    The program contains the function's source, preceded by everything that it refers to: the lesson's own functions
    and classes as source, modules and other functions as imports, and values as literals or pickles.

    Raises ValueError if the source of a function isn't available, or if a value can't be pickled.
    """
    definitions: dict[str, str] = {}
    name = _add_source(function, definitions)
    values = ", ".join(_expression_for(arg, f"argument {i}") for i, arg in enumerate(args))
    return "\n\n".join([*definitions.values(), f"{name}({values})\n"])


def _add_source(function: Any, definitions: dict[str, str]) -> str:
    """Add the source of a function or class to `definitions`, after everything that it refers to. Return its name."""
    unwrapped = inspect.unwrap(function)
    name = getattr(unwrapped, "__name__", "")
    if not name.isidentifier() or "<" in unwrapped.__qualname__:
        raise ValueError(f"{name or function} is not a top-level function of the lesson: define it there with def")
    source = ""
    with suppress(OSError, TypeError):
        source = textwrap.dedent(inspect.getsource(unwrapped))
    # Check the source, because Python 3.13 may return the source of a `python -c` program instead.
    if not re.search(rf"^(async )?(def|class) {name}\b", source, re.M):
        raise ValueError(f"the source of {name} is not available: give the program as text")
    definitions[name] = ""  # reserve the name, because the function may refer to itself
    references = _names_from_outside(symtable.symtable(source, "", "exec"))
    module_names = vars(sys.modules[unwrapped.__module__])
    for reference in sorted(references & set(module_names) - set(definitions)):
        value = module_names[reference]
        if isinstance(value, ModuleType):
            definitions[reference] = f"import {value.__name__} as {reference}"
        elif hasattr(inspect.unwrap(value) if callable(value) else value, "__qualname__"):
            home = inspect.unwrap(value).__module__
            if home == unwrapped.__module__ and inspect.unwrap(value).__name__ == reference:
                _add_source(value, definitions)
            else:
                definitions[reference] = f"from {home} import {value.__name__} as {reference}"
        else:
            definitions[reference] = f"{reference} = {_expression_for(value, reference)}"
    definitions[name] = definitions.pop(name) or source  # move it after its dependencies
    return name


def _names_from_outside(table: symtable.SymbolTable) -> set[str]:
    """Return the names that the source looks up globally, including from inside its functions."""
    is_module = table.get_type() == "module"
    names = {s.get_name() for s in table.get_symbols() if s.is_referenced() and (is_module or s.is_global())}
    return names.union(*map(_names_from_outside, table.get_children()))


def _expression_for(value: Any, name: str) -> str:
    """Return an expression that evaluates to the value. Raises ValueError with its name if it can't be pickled."""
    with suppress(ValueError, SyntaxError):
        if ast.literal_eval(repr(value)) == value:
            return repr(value)
    try:
        return f"__import__('pickle').loads({pickle.dumps(value)!r})"
    except Exception as error:
        message = f"{name} cannot be sent to another process ({error}): create it inside the function"
        raise ValueError(message) from error
