"""Test the weekly run's issues on GitHub, from pytest's own reports to the calls that a stand-in for `gh` receives."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tools.lessons import notebooks
from tools.maintenance import weekly_report

pytestmark = pytest.mark.other_versions

GH = """#!/usr/bin/env python3
import json, pathlib, sys
here = pathlib.Path({folder!r})
with open(here / "calls", "a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
if sys.argv[2] == "list":
    print((here / "open.json").read_text())
else:
    (here / "body").write_text(sys.stdin.read(), encoding="utf-8")
    print("https://github.com/a/b/issues/7")
"""
FAILING = """
import pytest
from tests import lesson_lint

@pytest.fixture(scope="session", autouse=True)
def versions(record_testsuite_property):
    record_testsuite_property("jax", "0.12.0")
    record_testsuite_property("Python", "3.13.1")

@pytest.mark.parametrize("path", ["01_devices", "05b_gradients_and_rings", "06_fine"])
def test_outputs(path):
    lesson_lint.fail_with([] if "fine" in path else ["sums: the page shows stdout '8', execution gives stdout '9'"])

@pytest.mark.parametrize("path", ["01_devices"])
def test_twice(path):
    sums = "sums: the page shows stdout '8', execution gives stdout '9'"
    lesson_lint.fail_with([sums, "meet: writes to stderr: '@all'"])

@pytest.mark.parametrize("path", ["01_devices"])
def test_execution(path):
    pytest.fail("loop: ValueError: no such axis\\n\\nFile ..., line 7\\nthe trace", pytrace=False)

@pytest.fixture
def broken():
    raise OSError("disk full")

def test_that_needs_it(broken):
    pass

def test_count():
    assert 2 + 2 == 5, "one thing\\n\\nanother"

def test_skipped():
    pytest.skip("not here")

def test_long():
    pytest.fail("cell: " + "x" * 5000 + "\\nlast: y", pytrace=False)
"""


@pytest.fixture
def github(tmp_path, monkeypatch):
    """Simulate GitHub with no open issues.

    The file `calls` lists the calls to `gh`, and the file `body` contains the text of the issue.
    """
    (tmp_path / "gh").write_text(GH.format(folder=str(tmp_path)))
    (tmp_path / "gh").chmod(0o755)
    (tmp_path / "open.json").write_text("[]")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    for name, value in {"SERVER_URL": "https://github.com", "REPOSITORY": "a/b", "RUN_ID": "42"}.items():
        monkeypatch.setenv(f"GITHUB_{name}", value)
    return tmp_path


def calls(github: Path) -> list[list[str]]:
    return [json.loads(line) for line in (github / "calls").read_text().splitlines()]


@pytest.fixture(scope="module")
def failed(tmp_path_factory) -> Path:
    """Return pytest's report on two test files, one of which can't be imported."""
    folder = tmp_path_factory.mktemp("failed")
    (folder / "test_it.py").write_text(FAILING)
    (folder / "test_gone.py").write_text("from json import no_such_name")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--continue-on-collection-errors"]
    environment = {"PYTHONPATH": str(notebooks.ROOT)}
    subprocess.run([*command, "--junitxml=report.xml"], cwd=folder, env=environment, capture_output=True)
    return folder / "report.xml"


def test_failures_are_grouped_by_lesson_without_duplicates(failed):
    failures, versions = weekly_report.read_report(failed)
    assert versions == "jax 0.12.0, Python 3.13.1"
    sums = "sums: the page shows stdout '8', execution gives stdout '9'"
    assert failures.pop("01_devices") == [sums, "meet: writes to stderr: '@all'", "loop: ValueError: no such axis"]
    assert failures.pop("05b_gradients_and_rings") == [sums]
    [fixture], assertion = failures.pop("test_it: test_that_needs_it"), failures.pop("test_it: test_count")
    assert "OSError: disk full" in fixture
    assert assertion == ["AssertionError: one thing"]
    line, last = failures.pop("test_it: test_long")
    assert len(line) == weekly_report.LONGEST_LINE and line.endswith("x…") and last == "last: y"
    [[gone]] = [failures.pop(name) for name in list(failures) if "gone" in name]
    assert gone.startswith("ImportError: cannot import name 'no_such_name' from 'json'")
    assert failures == {}


@pytest.mark.parametrize("kind", [*weekly_report.TITLES, "0.9"])
def test_an_issue_is_created_if_none_is_open(github, failed, kind):
    title = weekly_report.issue_title(kind)
    others = [
        {"number": 1, "title": other} for other in [f"Re: {title}", *weekly_report.TITLES.values()] if other != title
    ]
    (github / "open.json").write_text(json.dumps(others))
    weekly_report.main(kind, str(failed), "no log")
    [listing, creation] = calls(github)
    assert listing[:2] == ["issue", "list"] and "--state=open" in listing and "--repo=a/b" in listing
    assert creation == ["issue", "create", f"--title={title}", "--body-file=-", "--repo=a/b"]
    body = (github / "body").read_text(encoding="utf-8")
    assert "`01_devices`\n\n    sums: the page shows stdout '8', execution gives stdout '9'\n" in body
    assert "https://github.com/a/b/actions/runs/42" in body
    assert "(no log)" not in body


def test_the_open_issue_is_updated(github, failed):
    (github / "open.json").write_text(json.dumps([{"number": 7, "title": weekly_report.TITLES["nightly"]}]))
    weekly_report.main("nightly", str(failed), "no log")
    assert calls(github)[1] == ["issue", "edit", "7", "--body-file=-", "--repo=a/b"]
    assert "    loop: ValueError: no such axis\n" in (github / "body").read_text(encoding="utf-8")


def test_without_a_failed_test_the_issue_quotes_the_log(github):
    (github / "log").write_text("\n".join(f"line {i}" for i in range(100)) + "\nError: pip failed\n", encoding="utf-8")
    weekly_report.main("newest", str(github / "no report"), str(github / "log"))
    body = (github / "body").read_text(encoding="utf-8")
    assert body.endswith("    line 99\n    Error: pip failed\n")
    assert "line 50\n" not in body


def test_a_long_body_is_truncated(github):
    failures = {f"0{i}_lesson": [f"cell-{n}: ä" + "." * 280 for n in range(100)] for i in range(10)}
    text = weekly_report.issue_body(failures, "jax 0.12.0", github / "no log")
    assert len(text) == weekly_report.ISSUE_LIMIT == 65_536
    assert text.startswith("[The last weekly run](https://github.com/a/b/actions/runs/42) failed on jax 0.12.0.")
    assert text.endswith(weekly_report.TRUNCATED)
    weekly_report.post_issue("title", text)
    assert (github / "body").read_text(encoding="utf-8") == text


def test_the_weekly_run_s_command_needs_no_packages(github):
    weekly = (notebooks.ROOT / ".github" / "workflows" / "weekly.yml").read_text(encoding="utf-8")
    assert "run: python3 -m tools.maintenance.weekly_report " in weekly
    bare = [sys.executable, "-S", "-m"]  # with only the standard library
    command = [*bare, "tools.maintenance.weekly_report", "newest", "no report", "no log"]
    run = subprocess.run(command, cwd=notebooks.ROOT, capture_output=True, text=True)
    assert run.stdout == "https://github.com/a/b/issues/7\n", run.stderr


def test_a_failure_of_gh_is_an_error(github, capsys):
    (github / "gh").write_text("#!/bin/sh\nexit 4\n")
    with pytest.raises(SystemExit, match="gh issue list failed"):
        weekly_report.post_issue("title", "text")
