"""Test the files for Binder, Codespaces and GitHub's issue form, and the changelog."""

from __future__ import annotations

import json
import re

from tests import lesson_lint
from tools import NUMBER
from tools.lessons import notebooks

ROOT = notebooks.ROOT
CONTAINER = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8"))


def test_binder_installs_the_packages_of_make_lab():
    [line] = (ROOT / ".binder" / "requirements.txt").read_text(encoding="utf-8").split("\n")[:-1]
    assert line.startswith("-r ")
    assert (ROOT / ".binder" / line.removeprefix("-r ")).resolve() == ROOT / "requirements.txt"


def test_codespaces_uses_the_project_s_own_environment():
    target = CONTAINER["postCreateCommand"].removeprefix("make ")
    rule = re.search(rf"^{target}:.*\n\t@\$\(ENVIRONMENT\) (\S+) (\S+)$", (ROOT / "Makefile").read_text(), re.M)
    assert rule and rule[2] == "requirements.txt"
    interpreter = CONTAINER["customizations"]["vscode"]["settings"]["python.defaultInterpreterPath"]
    assert interpreter == f"${{containerWorkspaceFolder}}/{rule[1]}/bin/python"
    assert "ms-toolsai.jupyter" in CONTAINER["customizations"]["vscode"]["extensions"]


def test_the_form_names_a_command_and_a_cell_that_exist():
    form = (ROOT / ".github" / "ISSUE_TEMPLATE" / "cell-does-not-run.yml").read_text(encoding="utf-8")
    assert "`make doctor`" in form and re.search(r"^doctor:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    [imported] = re.findall(r"`from tools\.reader\.doctor import (\w+)`", form)
    from tools.reader import doctor

    assert callable(getattr(doctor, imported)) and f"`{imported}()`" in form


def test_the_changelog_names_every_lesson():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    named = re.findall(rf"\b{NUMBER}\b", re.sub(r"\d{4}|\d+ November", "", text))
    missing = [number for number in map(notebooks.number, notebooks.lessons()) if number not in named]
    lesson_lint.fail_with(
        [f"CHANGELOG.md does not name lesson {number}: add a line under Unreleased" for number in missing]
    )
    assert re.search(r"^## \[Unreleased\]$", text, re.M)
    sections = set(re.findall(r"^### (.+)$", text, re.M))
    assert sections <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
