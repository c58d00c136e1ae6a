"""The browser that prints the PDF and tests the site: the system's Chromium or Chrome, never a download of our own."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

NAMES = ("chromium", "google-chrome", "google-chrome-stable", "chrome", "chromium-browser")
MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
FONT = "fonts-wqy-microhei"  # 1.6 MB, simplified and traditional
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


def chinese() -> bool:
    """Is there a font with Chinese characters for the PDF's glossary? Where nobody can tell, there is."""
    if not shutil.which("fc-list"):
        return True
    return bool(subprocess.run(["fc-list", ":lang=zh", "family"], capture_output=True, text=True).stdout.strip())


def path() -> str:
    """As `find`; on Debian and Ubuntu, root gets browser and font installed. Raises SystemExit, saying what to do."""
    if find() and chinese():
        return find()
    log = ""
    if shutil.which("apt-get") and os.geteuid() == 0:
        wanted = ["chromium"] * (not find()) + ["fontconfig", FONT]
        print(f"Installing {', '.join(wanted)} with apt-get, once ...", flush=True)
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for step in (["update", "-q"], ["install", "-q", "-y", "--no-install-recommends", *wanted]):
            done = subprocess.run(["apt-get", *step], env=environment, capture_output=True, text=True)
            log += done.stdout + done.stderr
    if not find():
        said = f" (apt-get said: {log.strip().splitlines()[-1]})" if log.strip() else ""
        raise SystemExit(
            "Error: the PDF and the site's tests need Chromium or Chrome. On Debian: apt-get install chromium. "
            f"Elsewhere install Chrome, or name the browser's program in BROWSER_PATH.{said}"
        )
    if not chinese():
        print(f"Without a Chinese font the PDF's glossary has boxes. On Debian: apt-get install {FONT}", flush=True)
    return find()


@contextmanager
def launched() -> Iterator[Any]:
    """A headless browser, as Playwright's object."""
    from playwright.sync_api import sync_playwright

    program = path()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=OPTIONS)
        try:
            yield browser
        finally:
            browser.close()
