"""The course without make, on any system: python start.py lab. The Makefile calls the same.

python start.py setup              install what the lessons need, and open nothing
python start.py lab                open your copies of the lessons in JupyterLab; what follows is passed on
python start.py room               is this machine ready for the course, and what to do if not
python start.py fresh 02           give a lesson anew, and keep your copy aside
python start.py progress [FOLDER]  what you have solved, or a room's saved notebooks
python start.py test [ARGS]        run the lessons and compare what they print with the page; ARGS go to pytest
"""

import os
import subprocess
import sys

# An old Python is to say what is wrong in a sentence, so nothing in this file may be newer syntax than it can read.
if sys.version_info < (3, 11):  # noqa: UP036
    sys.exit("Error: this is Python {}.{}, and the course needs 3.11 or newer.".format(*sys.version_info))

os.environ.setdefault("PYTHONUTF8", "1")  # also where the locale is another: all that is started writes UTF-8
HERE = os.path.dirname(os.path.abspath(__file__))
LESSONS = ["requirements.txt"]
TESTS = [*LESSONS, "tests/requirements.txt", "tests/requirements-default.txt"]


def python(venv=".venv"):
    """An environment's interpreter."""
    return os.path.join(HERE, venv, *(("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")))


def run(command, folder=HERE):
    """Run a step to its end, also where Ctrl-C ends it, and return its exit status."""
    step = subprocess.Popen(command, cwd=folder)
    while True:
        try:
            return step.wait()
        except KeyboardInterrupt:  # the step got it, too, and may ask whether it was meant
            continue


def setup(requirements=LESSONS):
    """The environment; offline from a stick (tools/teach/handout.py), where `wheels` stands beside the course."""
    wheels = os.path.join(os.path.dirname(HERE), "wheels")
    if os.path.isdir(wheels):
        os.environ.update({"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": wheels})
    status = run([sys.executable, os.path.join("tools", "reader", "environment.py"), ".venv", *requirements])
    if status:
        raise SystemExit(status)


def lab(options):
    setup()
    status = run([python(), "-m", "tools.reader.work", "--lab"])
    if status:
        return 0 if status == 3 else status  # 3: one is open, and it said where
    root = ["--allow-root"] if hasattr(os, "getuid") and os.getuid() == 0 else []  # in containers nobody else is there
    settings = f"--LabApp.app_settings_dir={os.path.join(HERE, 'tools', 'reader', 'lab')}"
    once = "--ServerApp.answer_yes=True"  # one Ctrl-C ends it, as the README says, without a question
    opened = ["--LabApp.default_url=/lab/tree/START.md", once, *root, *options]
    os.environ["JUPYTERLAB_WORKSPACES_DIR"] = os.path.join(HERE, "work", ".workspaces")  # not what else was open today
    return run([python(), "-m", "jupyterlab", settings, *opened], os.path.join(HERE, "work"))


def main(arguments):
    command, rest = (arguments or ["help"])[0], arguments[1:]
    if command == "setup":
        setup()
        return 0
    if command == "lab":
        return lab(rest)
    if command == "room":
        return run([sys.executable, "-m", "tools.reader.room"])
    if command == "fresh":
        setup()
        return run([python(), "-m", "tools.reader.work", "--fresh", *rest])
    if command == "progress":
        return run([sys.executable, "-m", "exercises.progress", *map(os.path.abspath, map(os.path.expanduser, rest))])
    if command == "test":
        setup(TESTS)
        return run([python(), "-m", "pytest", "--passes", "plain", *(rest or ["tests/lessons", "tests/helpers"])])
    known = command in ("help", "-h", "--help")
    print(__doc__.strip() if known else f"Error: there is no `{command}`. There are:\n\n{__doc__.strip()}")
    return 0 if known else 2


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
