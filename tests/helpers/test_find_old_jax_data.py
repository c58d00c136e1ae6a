"""Test that the migration checker agrees with appendix 90, the tool that records names, and pyproject.toml."""

from __future__ import annotations

import json
import pkgutil
import re
import sys
import tomllib

import pytest
from find_old_jax.error_lookup import find_answer
from find_old_jax.old_apis import PHRASES

from tools.lessons import notebooks
from tools.maintenance import jax_names

pytestmark = pytest.mark.once
PACKAGE = notebooks.ROOT / "packages" / "find-old-jax"


def test_the_repository_s_root_installs_the_package():
    """Test that the root provides the same command, because pre-commit and `uvx` install it from there."""
    root, package = (tomllib.loads((folder / "pyproject.toml").read_text()) for folder in (notebooks.ROOT, PACKAGE))
    for key in ("name", "version", "description", "requires-python", "dependencies", "scripts"):
        assert root["project"][key] == package["project"][key], key
    settings = package["tool"]["setuptools"]
    assert root["tool"]["setuptools"] == {**settings, "package-dir": {"": "packages/find-old-jax/src"}}
    assert root["build-system"] == package["build-system"]
    [(name, target)] = root["project"]["scripts"].items()
    assert callable(pkgutil.resolve_name(target))
    assert f"entry: {name}\n" in (notebooks.ROOT / ".pre-commit-hooks.yaml").read_text()


def test_the_installed_package_needs_only_python():
    source = PACKAGE / "src" / "find_old_jax"
    imported = {
        module
        for path in source.glob("*.py")
        for module in re.findall(r"^\s*(?:from|import) (\w+)", path.read_text(encoding="utf-8"), re.M)
    }
    assert "find_old_jax" in imported and imported - {"find_old_jax"} <= sys.stdlib_module_names
    settings = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["tool"]["setuptools"]
    data = {path.name for path in source.iterdir() if path.suffix not in (".py", "") and path.is_file()}
    assert data == set(settings["package-data"]["find_old_jax"])


def test_the_index_of_appendix_90_has_one_row_for_each_of_the_checker_s_phrases():
    """Test that each row of the index quotes one message, for which the checker finds the same row of the page."""
    page = notebooks.read(notebooks.ROOT / "notebooks" / "90_old_code_new_jax.ipynb")
    [index] = [cell for cell in page.cells if cell.id == "index"]
    lines = re.findall(r"^\| (.*?) \| \[(\d+)\]\(#Row-\2\) \|", index.source.split("**No message**")[0], re.M)
    table: dict[str, int] = {}
    for message, row in lines:
        if not message.startswith("any other name: "):
            phrase = message.removeprefix("on an older JAX: ").replace("` ... `", " ... ")
            table[re.sub("^`+|`+$", "", phrase)] = int(row)
    phrases = {phrase.replace("`with mesh:`", "with mesh:"): row for row, some in PHRASES.items() for phrase in some}
    assert phrases.items() <= table.items()
    for phrase in table.keys() - phrases.keys() - {"no attribute 'pcast'"}:  # each contains an old name
        modules = ("jax", "jax.lib", "jax.lax", "jax.sharding", "jax.experimental")
        messages = [phrase, *(f"module '{module}' has {phrase}" for module in modules)]
        messages += [f"{phrase} from '{module}'" for module in modules]
        assert table[phrase] in {answer.row for answer in map(find_answer, messages) if answer}, phrase


def test_splitting_and_merging_reproduces_the_record():
    """Test that the record contains all names of each version, so that adding a version doesn't need old dumps."""
    text = jax_names.RECORD.read_text(encoding="utf-8")
    assert jax_names.record_text(jax_names.merge(jax_names.split_by_version(json.loads(text)))) == text
    assert len(text) < 310_000


def test_the_record_of_a_module(tmp_path):
    source = "import os\nfrom jax import lax\nfrom typing import Any\nfrom . import own\n_hidden = 1\nx, y = 1, 2\n"
    source += "try:\n    def f(): ...\nexcept ImportError:\n    g = 1\nclass C: ...\n"
    path = tmp_path / "m.py"
    path.write_text(source)
    assert jax_names.read_names(path) == ["C", "f", "g", "lax", "own", "x", "y"]
    assert jax_names.signature(lambda a, /, b, *, c=1: 0) == "2 b c"
    assert jax_names.signature(lambda *a, b=1: 0) == "* b"
    assert jax_names.signature(lambda *a, **b: 0) is None and jax_names.signature(3) is None
    assert jax_names.spans([{"a", "b"}, {"a"}, {"b"}, {"a"}, {"a"}]) == {"0-1,3-4": "a", "0,2": "b"}
