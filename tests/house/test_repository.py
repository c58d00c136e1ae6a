"""The repository's name in one constant, README and its picture, the tools that maintainers run."""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from nbformat.v4 import new_markdown_cell, new_notebook

from tests import checks
from tools.lessons import notebooks, readme, scripts, stamp
from tools.reader import environment

README = (notebooks.ROOT / "README.md").read_text(encoding="utf-8")


def test_readme_lists_the_lessons_as_the_notebooks_are():
    assert readme.listed(README, readme.rows()) == README, "README's tables are not the notebooks': run make stamp"


def test_readme_s_tables_are_written_by_part(tmp_path):
    """By hand: 40 + 10, 65 + 10 and 40 minutes are 2.75 hours."""
    task = new_markdown_cell("### Exercise 6.1 — A (●○○ · 10 min)\n\nNot the 4 of · 3 min).", id="task")
    (tmp_path / "notebooks").mkdir()
    for name, title, plan in (
        ("06_a", "# 06 · A: `a`\n\n**One\nthing.** More.", "**You need** 05, 40 minutes."),
        ("12c_b", "# 12c · B\n\n**Two, 2.5 each.**", "**Not this.**\n\n**You need** 06; 65 minutes (40 to read)."),
        ("90_c", "# 90 · C\n\n**A third.**", "**You need**\nnothing, 40 minutes."),
    ):
        cells = [new_markdown_cell(title, id="title"), new_markdown_cell(plan, id="plan")]
        cells += [] if name == "90_c" else [task]
        notebooks.write(new_notebook(cells=cells), tmp_path / "notebooks" / f"{name}.ipynb")
    first, second, third = found = readme.rows(tmp_path)
    assert first == readme.Row("06", "A: `a`", "notebooks/06_a.ipynb", "One thing.", 40, 10)
    assert (second.price, second.minutes, second.part) == ("Two, 2.5 each.", 65, "Part III: training at scale")
    assert (first.part, third.part, third.practice) == ("Part I: eight devices", "Appendix", 0)
    assert readme.hours(found) == 3
    text = f"All 7 lessons take about 9 hours.\n\n{readme.BEGIN}old{readme.END}\n\nEach lesson takes 1 to 2 minutes.\n"
    text = readme.listed(text, found)
    assert text.startswith("All 3 lessons take about 3 hours.\n\n")
    assert text.endswith(f"{readme.END}\n\nEach lesson takes 40 to 75 minutes.\n") and "old" not in text
    assert re.findall(r"^### (.+)", text, re.M) == ["Part I: eight devices", "Part III: training at scale", "Appendix"]
    [row] = re.findall(r"^\| 06 .*", text, re.M)
    assert row.startswith("| 06 | [A: `a`](notebooks/06_a.ipynb) | One thing. | 40 + 10 | [![Open in Colab](")
    colab, *others = notebooks.badges("notebooks/06_a.ipynb").split("\n")
    assert row.endswith(f"| {colab} |") and text.count(" ".join(others)) == 1
    assert readme.listed(text, found) == text


def test_the_examples_are_listed_as_they_are():
    text = (notebooks.ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    assert scripts.listed(text) == text, "run make stamp"
    assert all(f"({path.name})" in text for path in (notebooks.ROOT / "examples").glob("[0-9]*_*.py"))


def test_a_readme_without_a_place_for_the_lessons_is_refused():
    for place in (readme.BEGIN, "lessons take about", "Each lesson takes"):
        with pytest.raises(ValueError, match=r"README.md has 0 places, and not one, for: "):
            readme.listed(README.replace(place, ""), readme.rows())


@pytest.mark.parametrize("page", [".github/CONTRIBUTING.md", "notebooks/README.md", "tests/README.md"])
def test_what_contributors_read_names_what_is_there(page):
    text = (notebooks.ROOT / page).read_text(encoding="utf-8")
    code = "\n".join(first or second for first, second in re.findall(r"(?s)```sh\n(.+?)```|`([^`\n]+)`", text))
    makefile = (notebooks.ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"\bmake ([a-z-]+)", code)):
        assert re.search(rf"^{target}:", makefile, re.M), f"there is no make {target}"
    paths = set(re.findall(r"\b(?:notebooks|utils|tests|tools|site|teach)/[\w/.*-]*", code))
    made = re.compile("NN|20_")  # by the steps themselves
    assert not [path for path in paths if not made.search(path) and not list(notebooks.ROOT.glob(path))]


def test_one_name_everywhere():
    name, revision = notebooks.repository()
    pages = [notebooks.ROOT / page for page in stamp.PAGES] + notebooks.lessons()
    owner, repo = name.split("/")
    assert set(re.findall(r"https://([\w-]+)\.github\.io/([\w.-]+)", README)) == {(owner, repo)}  # the site
    for page in pages:
        for found in stamp.BADGE.finditer(page.read_text(encoding="utf-8")):
            assert (found["name"], found["revision"]) == (name, notebooks.copies(revision)), page.name
    citation = (notebooks.ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^repository-code: (.+)$", citation, re.M) == [f"https://github.com/{name}"]


@pytest.mark.parametrize("path", notebooks.lessons(), ids=lambda path: path.stem)
def test_a_badge_leads_to_the_lesson(path):
    places = [found["place"] for found in stamp.BADGE.finditer(notebooks.badges(f"notebooks/{path.name}"))]
    assert places == [
        "colab.research.google.com/github/",
        "welcome?src=https://github.com/",
        "mybinder.org/v2/gh/",
        "codespaces.new/",
    ]
    assert notebooks.badges(f"notebooks/{path.name}").count(f"/notebooks/{path.name})") == 3  # Codespaces opens no file


def test_every_notebook_is_a_lesson():
    assert sorted((notebooks.ROOT / "notebooks").glob("*.ipynb")) == notebooks.lessons()


@pytest.mark.parametrize("another", ["another-{owner}/{repo}-2026", "a/b"])
def test_stamp_writes_another_name_everywhere_and_back(tmp_path, monkeypatch, another):
    for part in ("notebooks", "tools", ".github"):
        shutil.copytree(notebooks.ROOT / part, tmp_path / part)
    for page in stamp.PAGES:
        (tmp_path / page).parent.mkdir(exist_ok=True)
        shutil.copy(notebooks.ROOT / page, tmp_path / page)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    name, revision = notebooks.repository()
    owner, repo = name.split("/")
    another = another.format(owner=owner, repo=repo)
    stamp.stamp(tmp_path, another, "v1.2")
    monkeypatch.setattr(notebooks, "SETUP", tmp_path / "tools" / "lessons" / "setup_cell.py")
    assert notebooks.repository() == (another, "v1.2")
    for path in notebooks.lessons(tmp_path):
        notebook = notebooks.read(path)
        assert checks.badge_faults(notebook, f"notebooks/{path.name}") == []
        assert [cell.source for cell in notebook.cells if cell.id == "setup"] == [notebooks.setup_source()]
        assert path.read_text(encoding="utf-8") == notebooks.dumps(notebook)
    for page in [*(tmp_path / page for page in stamp.PAGES), *notebooks.lessons(tmp_path)]:
        text = page.read_text(encoding="utf-8")
        assert set(re.findall(rf"github\.com/{another}/blob/([\w.-]+)", text)) <= {"v1.2", "copies-v1.2"}
        assert not re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", text), page.name  # the old one, anywhere
    if repo not in another:  # nor the folder of its clone
        assert repo not in (tmp_path / "teach" / "workshop.md").read_text(encoding="utf-8")
    site = "https://{}.github.io/{}/".format(*another.split("/"))
    assert site in (tmp_path / "README.md").read_text(encoding="utf-8")
    stamp.stamp(tmp_path, name, revision)
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize(("name", "revision"), [("fork", "main"), ("a/b/c", "main"), ("a/b", "x y"), ("a/b", "")])
def test_stamp_refuses_what_is_no_address(tmp_path, name, revision):
    with pytest.raises(ValueError, match="expected owner/name"):
        stamp.stamp(tmp_path, name, revision)


def test_the_picture_in_readme_is_made_by_the_course():
    [cell] = [
        cell
        for cell in notebooks.read(notebooks.ROOT / "notebooks" / "02_sharding.ipynb").cells
        if cell.id == "layouts"
    ]
    picture = base64.b64decode(cell.outputs[0].data["image/png"])
    assert (notebooks.ROOT / ".github" / "layouts.png").read_bytes() == picture
    assert re.search(r"!\[[^\]]{20,}\]\(\.github/layouts\.png\)|alt=\"[^\"]{20,}\"", README)


def make_environment(folder: Path, *arguments: str, python: str = sys.executable, **variables: str):
    return subprocess.run(
        [python, str(notebooks.ROOT / "tools" / "reader" / "environment.py"), *arguments],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess]:
    """A folder with an environment in it, and what its making said."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "requirements.txt").write_text("# nothing\n")
    return folder, make_environment(folder, "venv", "requirements.txt")


def test_environment_is_made_once(made):
    folder, first = made
    assert first.returncode == 0, first.stderr
    assert first.stdout.splitlines()[0].startswith("Creating venv with Python 3.")
    assert first.stdout.splitlines()[-1].startswith("Ready after ")
    assert make_environment(folder, "venv", "requirements.txt").stdout == ""
    (folder / "more.txt").write_text("# nothing either\n")
    more = make_environment(folder, "venv", "requirements.txt", "more.txt")
    assert more.stdout.startswith("Installing what stands in more.txt (")
    assert make_environment(folder, "venv", "requirements.txt").stdout == ""


def test_no_network_is_one_line(made):
    folder, _ = made
    (folder / "jax.txt").write_text("jax\n")
    offline = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_EXTRA_INDEX_URL": "", "PIP_CONFIG_FILE": os.devnull}
    run = make_environment(folder, "venv", "jax.txt", **offline, PIP_RETRIES="0", PIP_FIND_LINKS="")
    assert run.returncode == 1
    assert len(run.stderr.splitlines()) == 1
    assert "Connect to the network" in run.stderr


def test_a_package_that_does_not_exist_is_named_in_one_line(made):
    folder, _ = made
    (folder / "none.txt").write_text("./no-such-folder\n")
    run = make_environment(folder, "venv", "none.txt")
    assert run.returncode == 1
    assert run.stderr.startswith("Error: the packages could not be installed: ERROR: ")
    assert len(run.stderr.splitlines()) == 1


def test_an_active_environment_does_not_count(made):
    folder, _ = made
    again = make_environment(folder, "venv", "requirements.txt", python=str(folder / "venv" / "bin" / "python"))
    assert (again.returncode, again.stdout) == (0, "")


@pytest.mark.parametrize(
    ("status", "told", "asked"),
    [
        (0, "", ["uv"]),
        (1, "", ["uv", "pip"]),
        (0, ":env:.index-url='https://a'\nglobal.index-url='https://b'\n:env:.constraint=''", ["uv https://a"]),
        (0, ":env:.constraint='nightly.txt'", ["pip"]),  # uv does not admit the pre-releases that it names
        (0, "global.pre='1'", ["pip"]),
    ],
)
def test_uv_installs_where_it_can_and_pip_where_it_fails(tmp_path, monkeypatch, status, told, asked):
    log = tmp_path / "log"
    for name, code in (("uv", status), ("venv/bin/python", 0)):
        program = tmp_path / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f'#!/bin/sh\necho "{name} $UV_DEFAULT_INDEX" "$@" >> {log}\necho "{told}"\nexit {code}\n')
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv("UV_DEFAULT_INDEX", raising=False)
    environment.install(str(tmp_path / "venv"), ["a.txt", "b.txt"])
    said = [line for line in log.read_text().splitlines() if " install " in line]
    assert [re.split(" -m| pip", line)[0].replace("venv/bin/python", "pip").strip() for line in said] == asked
    assert all(" -r a.txt -r b.txt " in line for line in said)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("OSError: [Errno 28] No space left on device", "the disk is full. The environment takes"),
        ("because ensurepip is not available.  On Debian", "no venv module. On Debian and Ubuntu: apt-get install"),
        ("/usr/bin/python3: No module named venv", "no venv module. On Debian and Ubuntu: apt-get install"),
        ("ERROR: first\nERROR: No matching distribution\n[notice] more", "it failed: ERROR: No matching distribution"),
        ("", "it failed: no reason given"),
    ],
)
def test_why_a_step_failed_is_one_line(said, message):
    with pytest.raises(SystemExit, match=re.escape(message)) as ended:
        environment.must([sys.executable, "-c", f"print({said!r}); raise SystemExit(1)"], "it failed")
    assert str(ended.value).startswith("Error: it failed: ") and "\n" not in str(ended.value)


def test_a_long_step_gives_signs_of_life(monkeypatch, capsys):
    monkeypatch.setattr(environment, "PATIENCE", 0.2)
    code = "import time; print('begun', flush=True); time.sleep(0.7); print('done')"
    assert environment.run([sys.executable, "-c", code]) == (0, "begun\ndone")
    assert capsys.readouterr().out.count("... still at work after ") >= 2


def test_an_interrupted_setup_says_one_line_and_goes_on(tmp_path, monkeypatch):
    """Stopped while packages are installed: the environment is there, and is not made anew."""
    (tmp_path / "requirements.txt").write_text("# nothing\n")
    path = notebooks.ROOT / "tools" / "reader" / "environment.py"
    source = path.read_text(encoding="utf-8").replace(
        "    install(venv, requirements)\n", "    import signal; os.kill(os.getpid(), signal.SIGINT); time.sleep(9)\n"
    )
    stopped = tmp_path / "environment.py"
    stopped.write_text(source)
    command = [sys.executable, str(stopped), "venv", "requirements.txt"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stderr) == (environment.STOPPED, "\nStopped. The same command goes on from here.\n")
    again = make_environment(tmp_path, "venv", "requirements.txt")
    assert again.returncode == 0 and again.stdout.startswith("Installing what stands in requirements.txt (")


def test_make_finds_a_python_that_is_new_enough(tmp_path):
    """Where python3 is too old, a newer one beside it is taken; where none is, one line says what to do."""
    (tmp_path / "python3").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "python3.12").write_text("#!/bin/sh\nexit 0\n")
    for name in ("make", "sh"):
        (tmp_path / name).symlink_to(shutil.which(name))
    for program in ("python3", "python3.12"):
        (tmp_path / program).chmod(0o755)

    def setup():
        command = ["make", "-n", "setup", f"SHELL={tmp_path / 'sh'}"]
        return subprocess.run(
            command, cwd=notebooks.ROOT, env={"PATH": str(tmp_path)}, capture_output=True, text=True, timeout=60
        )

    assert setup().stdout == "python3.12 tools/reader/environment.py .venv requirements.txt\n"
    (tmp_path / "python3.12").unlink()
    none = setup()
    assert none.returncode != 0 and len(none.stderr.splitlines()) == 1
    assert "The course needs Python 3.11 or newer, and none of python3 python3.13" in none.stderr


def test_the_newest_python_is_one_that_starts(tmp_path, monkeypatch):
    shim = tmp_path / f"python3.{environment.NEWEST[1]}"  # pyenv leaves such shims behind
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    found = environment.newest_python()
    assert found != str(shim)
    assert found is None or re.search(r" 3[.](12|13)[.]", environment.base(found))


def test_no_newer_python_is_said_and_skipped(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(environment, "newest_python", lambda: None)
    assert environment.main(["--newest-python", "venv", "requirements.txt"]) == environment.NOT_FOUND
    assert capsys.readouterr().out.startswith("Skipped: ")
