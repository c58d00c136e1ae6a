"""Find or install the browser that prints the PDF and tests the site: the system's Chromium or Chrome."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

NAMES = ("chromium", "google-chrome", "google-chrome-stable", "chrome", "chromium-browser")
MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
FONT = "fonts-wqy-microhei"  # 1.6 MB, with simplified and traditional characters
OPTIONS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def find_browser() -> str | None:
    """Return the path of a browser, or None. The environment variable BROWSER_PATH takes precedence."""
    if program := os.environ.get("BROWSER_PATH"):
        return program
    return next(filter(None, map(shutil.which, NAMES)), MAC if os.path.exists(MAC) else None)


def has_chinese_font() -> bool:
    """Return whether an installed font has the Chinese characters of the PDF's glossary, or True if that's unknown."""
    if not shutil.which("fc-list"):
        return True
    return bool(subprocess.run(["fc-list", ":lang=zh", "family"], capture_output=True, text=True).stdout.strip())


def ensure_browser() -> str:
    """Return the path of a browser.

    If the browser or a Chinese font is missing, install it with apt-get (only as root on Debian or Ubuntu).

    Raises SystemExit, with installation advice, if there's still no browser.
    """
    browser = find_browser()
    if browser and has_chinese_font():
        return browser
    log = ""
    if shutil.which("apt-get") and os.geteuid() == 0:
        packages = ["chromium"] * (not browser) + ["fontconfig", FONT]
        print(f"Installing {', '.join(packages)} with apt-get, once ...", flush=True)
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for step in (["update", "-q"], ["install", "-q", "-y", "--no-install-recommends", *packages]):
            step_result = subprocess.run(["apt-get", *step], env=environment, capture_output=True, text=True)
            log += step_result.stdout + step_result.stderr
    browser = find_browser()
    if not browser:
        hint = f" (apt-get said: {log.strip().splitlines()[-1]})" if log.strip() else ""
        raise SystemExit(
            "Error: the PDF and the site's tests need Chromium or Chrome. On Debian: apt-get install chromium. "
            f"Elsewhere, install Chrome, or set BROWSER_PATH to the path of a browser.{hint}"
        )
    if not has_chinese_font():
        print(f"Without a Chinese font, the PDF's glossary shows boxes. On Debian: apt-get install {FONT}", flush=True)
    return browser


@contextmanager
def launch() -> Iterator[Any]:
    """Start a headless browser, and yield Playwright's `Browser` object."""
    from playwright.sync_api import sync_playwright  # pyright: ignore[reportMissingImports]  (only in .venv-site)

    program = ensure_browser()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=OPTIONS)
        try:
            yield browser
        finally:
            browser.close()
