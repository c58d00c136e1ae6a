"""Run the course without make, on any system: python start.py lab. The Makefile calls this file for the same commands.

python start.py setup              install the packages that the lessons need
python start.py lab                open your copies of the lessons in JupyterLab; options are passed on to it
python start.py doctor             check whether this machine is ready for the course, and explain how to fix problems
python start.py fresh 02           start lesson 02 again, and keep your old copy in work/kept
python start.py progress [FOLDER]  print the exercises and guesses you got right, or those in a folder of notebooks
python start.py test [ARGS]        run the lessons and check their outputs against the saved ones; ARGS go to pytest
"""

import os
import subprocess
import sys

# Old Pythons parse the whole file before this check runs, so it may use only syntax that Python 3.6 supports.
if sys.version_info < (3, 11):  # noqa: UP036
    sys.exit("Error: this is Python {}.{}, but the course needs Python 3.11 or newer.".format(*sys.version_info))

os.environ.setdefault("PYTHONUTF8", "1")  # make every process started here use UTF-8, whatever the locale
HERE = os.path.dirname(os.path.abspath(__file__))
LESSONS = ["requirements.txt"]
TESTS = [*LESSONS, "tests/requirements.txt", "tests/requirements-default.txt"]


def python(venv=".venv"):
    """Return the path of an environment's interpreter."""
    return os.path.join(HERE, venv, *(("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")))


def run(command, folder=HERE):
    """Run a command in a folder, and return its exit status. Let the command itself handle Ctrl-C."""
    process = subprocess.Popen(command, cwd=folder)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:  # the process also received Ctrl-C, and may ask for confirmation
            continue


def setup(requirements=LESSONS):
    """Create or update the environment. If there's a `wheels` folder next to the course, install from it, offline.

    `make handout` (tools/teach/offline_folder.py) puts that folder on a USB drive. Raises SystemExit if setup fails.
    """
    wheels = os.path.join(os.path.dirname(HERE), "wheels")
    if os.path.isdir(wheels):
        os.environ.update({"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": wheels})
    status = run([sys.executable, os.path.join("tools", "reader", "environment.py"), ".venv", *requirements])
    if status:
        raise SystemExit(status)


def lab(options):
    """Update the reader's copies, open them in JupyterLab with these options, and return its exit status."""
    setup()
    status = run([python(), "-m", "tools.reader.copies", "--lab"])
    if status:
        return 0 if status == 3 else status  # 3: JupyterLab is already running here, and its address was printed
    root = ["--allow-root"] if hasattr(os, "getuid") and os.getuid() == 0 else []  # root is the only user in containers
    settings = f"--LabApp.app_settings_dir={os.path.join(HERE, 'tools', 'reader', 'lab')}"
    stop_at_once = "--ServerApp.answer_yes=True"  # a single Ctrl-C stops it, without asking for confirmation
    encrypt = "--KernelManager.transport_encryption=auto"  # without encryption, each kernel warns about eavesdroppers
    options = ["--LabApp.default_url=/lab/tree/START.md", stop_at_once, encrypt, *root, *options]
    os.environ["JUPYTERLAB_WORKSPACES_DIR"] = os.path.join(HERE, "work", ".workspaces")  # keep other projects' tabs out
    return run([python(), "-m", "jupyterlab", settings, *options], os.path.join(HERE, "work"))


def main(arguments):
    """Run the command that the arguments name, and return its exit status."""
    command, rest = (arguments or ["help"])[0], arguments[1:]
    if command == "setup":
        setup()
        return 0
    if command == "lab":
        return lab(rest)
    if command in ("doctor", "room"):  # "room" is the old name
        return run([sys.executable, "-m", "tools.reader.doctor"])
    if command == "fresh":
        setup()
        return run([python(), "-m", "tools.reader.copies", "--fresh", *rest])
    if command == "progress":
        return run([sys.executable, "-m", "exercises.progress", *map(os.path.abspath, map(os.path.expanduser, rest))])
    if command == "test":
        setup(TESTS)
        return run([python(), "-m", "pytest", "--passes", "plain", *(rest or ["tests/lessons", "tests/helpers"])])
    is_help = command in ("help", "-h", "--help")
    commands = (__doc__ or "").strip()
    print(commands if is_help else f"Error: there is no command `{command}`. Choose from:\n\n{commands}")
    return 0 if is_help else 2


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
