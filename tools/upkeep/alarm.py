"""Report a weekly run that failed: one issue for each kind of run, opened the first time and kept up to date after.

Runs on a bare Python with GitHub's `gh` on the PATH, in GitHub Actions, which says in the environment which run it is.
usage: python3 -m tools.upkeep.alarm newest|nightly|oldest|links|0.9 REPORT LOG
REPORT is what pytest's --junitxml wrote (missing where no test ran), LOG what the run printed.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

from tools import NUMBER

TITLES = {
    "newest": "Weekly run: the course fails on the newest JAX",
    "nightly": "Weekly run: the course fails on JAX's nightly build",
    "oldest": "Weekly run: the course fails on the oldest supported JAX",
    "links": "Weekly run: links lead nowhere",
}
LIMIT = 65_536  # characters that GitHub takes for the body of an issue
CUT = "\n\n(Cut here, at GitHub's limit: the run's log has the rest.)\n"
WIDEST = 300  # characters of one line, so that one long table does not hide the other cells


def main(kind: str, report: str, log: str) -> None:
    found, versions = read(Path(report))
    post(title(kind), body(found, versions, Path(log)))


def title(kind: str) -> str:
    """Of the issue; a kind that has none of its own is a version of JAX."""
    return TITLES.get(kind, f"Weekly run: the course fails on JAX {kind}")


def read(report: Path) -> tuple[dict[str, list[str]], str]:
    """By lesson (by test, for other tests), what failed, each thing once; and the versions that the tests ran on."""
    found: dict[str, list[str]] = {}
    if not report.exists():
        return found, ""
    root = ElementTree.parse(report).getroot()
    for case in root.iter("testcase"):
        name = case.get("name", "")
        lesson = re.search(rf"\[({NUMBER}_\w+)\]$", name)
        for problem in [*case.findall("failure"), *case.findall("error")]:
            lines = found.setdefault(lesson[1] if lesson else f"{case.get('classname')}: {name}", [])
            lines += [line for line in first_paragraph(problem) if line not in lines]
    versions = [f"{entry.get('name')} {entry.get('value')}" for entry in root.iter("property")]
    return found, ", ".join(versions)


def first_paragraph(problem: ElementTree.Element) -> list[str]:
    """The lessons' tests put cells there, one a line; an assertion puts what was compared."""
    message, text = problem.get("message", "").removeprefix("Failed: "), problem.text or ""
    if message == "collection failure":  # which says nothing; the last line of the traceback does
        message = re.findall(r"^E +(.*)", text, re.M)[-1]
    elif text.startswith(message[:60]):  # no traceback but the message itself, which pytest 9.2 cuts in the attribute
        message = text
    paragraph = re.split(r"\n\s*\n", message.strip())[0]
    return [line if len(line) <= WIDEST else f"{line[: WIDEST - 1]}…" for line in paragraph.splitlines()]


def body(found: dict[str, list[str]], versions: str, log: Path) -> str:
    """What the issue says. Quotations are indented: in code, GitHub reads neither names nor numbers nor markup."""
    repository = f"{os.environ['GITHUB_SERVER_URL']}/{os.environ['GITHUB_REPOSITORY']}"
    parts = [
        f"[The last weekly run]({repository}/actions/runs/{os.environ['GITHUB_RUN_ID']}) failed"
        f"{versions and f' on {versions}'}. What to do: "
        f"[When the alarm rings]({repository}/blob/HEAD/.github/CONTRIBUTING.md#when-the-alarm-rings)."
    ]
    for name in sorted(found, key=lambda name: (not name[0].isdigit(), name)):  # the lessons, then other tests
        parts.append(f"`{name}`\n\n" + indented(found[name]))
    if not found:
        end = log.read_text(encoding="utf-8", errors="replace").splitlines()[-40:] if log.exists() else []
        parts.append("No test failed, so something else did. The end of its log:\n\n" + indented(end or ["(no log)"]))
    text = "\n\n".join(parts) + "\n"
    return text if len(text) <= LIMIT else text[: LIMIT - len(CUT)] + CUT


def indented(lines: list[str]) -> str:
    return "\n".join(f"    {line}" for line in lines)


def post(title: str, text: str) -> None:
    """Write into the open issue of this title, or open it."""
    listed = json.loads(gh("list", "--state=open", "--limit=1000", "--json=number,title"))
    numbers = [str(issue["number"]) for issue in listed if issue["title"] == title]
    what = ["edit", numbers[0]] if numbers else ["create", f"--title={title}"]
    print(gh(*what, "--body-file=-", text=text).strip())


def gh(*arguments: str, text: str | None = None) -> str:
    command = ["gh", "issue", *arguments, f"--repo={os.environ['GITHUB_REPOSITORY']}"]
    run = subprocess.run(command, input=text, stdout=subprocess.PIPE, encoding="utf-8")
    if run.returncode:
        sys.exit(f"Error: {' '.join(command[:3])} failed; what it said stands above.")
    return run.stdout


if __name__ == "__main__":
    main(*sys.argv[1:])
