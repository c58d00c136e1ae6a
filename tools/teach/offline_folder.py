"""Prepare a folder for a USB drive, with the course, its slides and its packages, for a workshop without internet.

Run `make handout`, or `make handout FOR="3.12" SYSTEMS="linux windows"` to choose the Python versions and
systems. In that folder, start.py needs no network: it installs the packages from `wheels`, which is beside the course.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tools.lessons import notebooks
from tools.reader import environment

OUT = notebooks.ROOT / "handout"
PYTHONS = ("3.11", "3.12", "3.13")
SYSTEMS = {  # for each system, uv's name, then pip's names; a wheel may have any of pip's names
    "linux": ("x86_64-manylinux_2_28", "manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux2014_x86_64"),
    "mac": ("aarch64-apple-darwin", "macosx_14_0_arm64", "macosx_12_0_arm64", "macosx_11_0_arm64"),
    "windows": ("x86_64-pc-windows-msvc", "win_amd64"),
}
INSTRUCTIONS = """One Program, Many Devices: without internet

1. You need Python {pythons} ({systems}). To check, type:   python3 --version     (Windows: py --version)
2. Copy this whole folder to your machine. It takes up about {size:.1f} GB, and the installation 1.2 GB more.
3. In the folder, type:   python3 course/start.py lab         (Windows: py course\\start.py lab)
   The first time takes a few minutes. It opens your copies of the lessons. Ctrl-C stops it, and the same command opens
   them again.

To check whether your machine is ready, type:   python3 course/start.py doctor
If you have a different Python, or a Mac with an Intel chip, work with a neighbour, or use Colab at home.
Slides of the lessons are in course/slides. Open them in a browser.
"""


def fetch_wheels(python: str, system: str, wheels: Path) -> None:
    """Download the packages that the lessons need for a Python version and a system.

    Resolve the requirements with uv, because pip would skip packages that only the target system needs. Then
    download exactly the resolved packages with pip.

    Raises SystemExit if uv is missing, and CalledProcessError if uv or pip fails.
    """
    platform, *platforms = SYSTEMS[system]
    uv = environment.find_uv(sys.executable)
    if not uv:
        raise SystemExit(
            "Error: uv, which resolves the packages of other systems, is missing: python3 -m pip install uv"
        )
    requirements = str(notebooks.ROOT / "requirements.txt")
    options = ["--python-platform", platform, "--python-version", python, "--no-header", "--no-annotate", "--quiet"]
    resolved = subprocess.run([uv, "pip", "compile", requirements, *options], check=True, stdout=subprocess.PIPE).stdout
    requirements_file = wheels / f"{system}-{python}.txt"
    wheels.mkdir(exist_ok=True)
    requirements_file.write_bytes(resolved)
    for_pip = [part for name in platforms for part in ("--platform", name)]
    download_options = ["--no-deps", "--only-binary=:all:", "--python-version", python, "--dest", str(wheels)]
    pip = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "-r",
        str(requirements_file),
        *download_options,
        *for_pip,
    ]
    subprocess.run(pip, check=True)


def copy_course(target: Path) -> None:
    """Copy the committed files, and the slides if `make slides` has been run."""
    target.mkdir(parents=True)
    packed = subprocess.run(["git", "-C", str(notebooks.ROOT), "archive", "HEAD"], capture_output=True, check=True)
    subprocess.run(["tar", "-x", "-C", str(target)], input=packed.stdout, check=True)
    if (slides := notebooks.ROOT / "slides").is_dir():
        shutil.copytree(slides, target / "slides")


def main(pythons: list[str], systems: list[str]) -> None:
    """Fill the folder `handout`. Raises SystemExit, with advice, if a name is unknown or a download fails."""
    unknown = [name for name in pythons if name not in PYTHONS] + [name for name in systems if name not in SYSTEMS]
    if unknown:
        raise SystemExit(f"Error: unknown name {unknown[0]}; choose from {', '.join([*PYTHONS, *SYSTEMS])}")
    shutil.rmtree(OUT, ignore_errors=True)
    copy_course(OUT / "course")
    for python in pythons:
        for system in systems:
            print(f"Downloading the packages for Python {python} on {system} ...", flush=True)
            try:
                fetch_wheels(python, system, OUT / "wheels")
            except subprocess.CalledProcessError as error:
                why = f"the packages for Python {python} on {system} can't be downloaded (the reason is above)"
                raise SystemExit(f"Error: {why}") from error
    size = sum(path.stat().st_size for path in OUT.rglob("*") if path.is_file()) / 1e9
    instructions = INSTRUCTIONS.format(pythons=" or ".join(pythons), systems=", ".join(systems), size=size)
    (OUT / "START-HERE.txt").write_text(instructions, encoding="utf-8")
    if not (OUT / "course" / "slides").is_dir():
        print("The folder has no slides. To add them: make slides, then make handout again.")
    print(f"handout/ is ready: {size:.1f} GB. Copy the whole folder to a USB drive. START-HERE.txt lists the commands.")


if __name__ == "__main__":
    pythons, _, systems = " ".join(sys.argv[1:]).partition("--")
    main(pythons.split() or list(PYTHONS), systems.split() or list(SYSTEMS))
