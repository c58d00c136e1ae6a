"""Report a failure of the weekly compatibility check: create an issue for this kind of run, or update the open one.

usage: python3 -m tools.maintenance.weekly_report newest|nightly|oldest|links|compilers|0.9 REPORT LOG

REPORT is the file written by pytest's --junitxml (missing if no test ran), and LOG is the run's output. This script
runs in GitHub Actions, and needs only Python and GitHub's `gh`. It reads the run's id from the environment.
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
    "links": "Weekly run: some links are broken",
    "compilers": "Weekly run: compiled programs send different bytes from those in the lessons",
}
ISSUE_LIMIT = 65_536  # characters; GitHub's limit for the body of an issue
TRUNCATED = "\n\n(Truncated here, at GitHub's limit. The run's log contains the rest.)\n"
LONGEST_LINE = 300  # characters; longer lines are truncated, so that a long table doesn't hide other failures


def main(kind: str, report: str, log: str) -> None:
    failures, versions = read_report(Path(report))
    post_issue(issue_title(kind), issue_body(failures, versions, Path(log)))


def issue_title(kind: str) -> str:
    """Return the issue's title. A kind that isn't in `TITLES` is a JAX version."""
    return TITLES.get(kind, f"Weekly run: the course fails on JAX {kind}")


def read_report(report: Path) -> tuple[dict[str, list[str]], str]:
    """Return the failures, by lesson (or by test, for other tests) and without duplicates, and the tested versions."""
    failures: dict[str, list[str]] = {}
    if not report.exists():
        return failures, ""
    root = ElementTree.parse(report).getroot()
    for case in root.iter("testcase"):
        name = case.get("name", "")
        lesson = re.search(rf"\[({NUMBER}_\w+)\]$", name)
        for problem in [*case.findall("failure"), *case.findall("error")]:
            lines = failures.setdefault(lesson[1] if lesson else f"{case.get('classname')}: {name}", [])
            lines += [line for line in first_paragraph(problem) if line not in lines]
    versions = [f"{entry.get('name')} {entry.get('value')}" for entry in root.iter("property")]
    return failures, ", ".join(versions)


def first_paragraph(problem: ElementTree.Element) -> list[str]:
    """Return the lines of a failure's first paragraph: one for each failed cell, or an assertion's message."""
    message, text = problem.get("message", "").removeprefix("Failed: "), problem.text or ""
    if message == "collection failure":  # only the last error line of the traceback gives the reason
        message = re.findall(r"^E +(.*)", text, re.M)[-1]
    # The text is the complete message without a traceback, whereas pytest 9.2 shortens the attribute.
    elif text.startswith(message[:60]):
        message = text
    paragraph = re.split(r"\n\s*\n", message.strip())[0]
    return [line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 1]}…" for line in paragraph.splitlines()]


def issue_body(failures: dict[str, list[str]], versions: str, log: Path) -> str:
    """Return the issue's text. Quoted output is indented as code, so that GitHub ignores mentions and markup in it."""
    repository = f"{os.environ['GITHUB_SERVER_URL']}/{os.environ['GITHUB_REPOSITORY']}"
    parts = [
        f"[The last weekly run]({repository}/actions/runs/{os.environ['GITHUB_RUN_ID']}) failed"
        f"{versions and f' on {versions}'}. What to do: "
        f"[When the weekly check fails]({repository}/blob/HEAD/.github/CONTRIBUTING.md#when-the-weekly-check-fails)."
    ]
    for name in sorted(failures, key=lambda name: (not name[0].isdigit(), name)):  # lessons first, then other tests
        parts.append(f"`{name}`\n\n" + indented(failures[name]))
    if not failures:
        end = log.read_text(encoding="utf-8", errors="replace").splitlines()[-40:] if log.exists() else []
        parts.append("No test failed, but the run did. The end of its log:\n\n" + indented(end or ["(no log)"]))
    text = "\n\n".join(parts) + "\n"
    return text if len(text) <= ISSUE_LIMIT else text[: ISSUE_LIMIT - len(TRUNCATED)] + TRUNCATED


def indented(lines: list[str]) -> str:
    return "\n".join(f"    {line}" for line in lines)


def post_issue(title: str, text: str) -> None:
    """Update the open issue with this title, or create one."""
    issues = json.loads(run_gh("list", "--state=open", "--limit=1000", "--json=number,title"))
    numbers = [str(issue["number"]) for issue in issues if issue["title"] == title]
    action = ["edit", numbers[0]] if numbers else ["create", f"--title={title}"]
    print(run_gh(*action, "--body-file=-", text=text).strip())


def run_gh(*arguments: str, text: str | None = None) -> str:
    command = ["gh", "issue", *arguments, f"--repo={os.environ['GITHUB_REPOSITORY']}"]
    run = subprocess.run(command, input=text, stdout=subprocess.PIPE, encoding="utf-8")
    if run.returncode:
        sys.exit(f"Error: {' '.join(command[:3])} failed; its output is above.")
    return run.stdout


if __name__ == "__main__":
    main(*sys.argv[1:])
