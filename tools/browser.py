"""The browser that prints the PDF and tests the site: the system's Chromium or Chrome, never a download of our own."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
OPTIONS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def find() -> str | None:
    """The path of a browser, or None. $BROWSER_PATH, where it is set, is the one."""
    if named := os.environ.get("BROWSER_PATH"):
        return named
    return next(filter(None, map(shutil.which, NAMES)), MAC if os.path.exists(MAC) else None)


def path() -> str:
    """As `find`; on Debian and Ubuntu, root gets one installed. Raises SystemExit with a line that says what to do."""
    if found := find():
        return found
    if shutil.which("apt-get") and os.geteuid() == 0:
        print("Installing Chromium with apt-get, once ...", flush=True)
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        log = ""
        for step in (["update", "-q"], ["install", "-q", "-y", "--no-install-recommends", "chromium"]):
            done = subprocess.run(["apt-get", *step], env=environment, capture_output=True, text=True)
            log += done.stdout + done.stderr
        if found := find():
            return found
        raise SystemExit(f"Error: apt-get could not install chromium: {log.strip().splitlines()[-1]}")
    raise SystemExit(
        "Error: the PDF and the site's tests need Chromium or Chrome. On Debian: apt-get install chromium. Elsewhere "
        "install Chrome, or name the browser's program in BROWSER_PATH."
    )


@contextmanager
def launched() -> Iterator[Any]:
    """A headless browser, as Playwright's object."""
    from playwright.sync_api import sync_playwright

    program = path()
    root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []  # its sandbox refuses root
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=[*OPTIONS, *root])
        try:
            yield browser
        finally:
            browser.close()
