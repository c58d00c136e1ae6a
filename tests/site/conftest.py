"""Serve the built site on localhost to a headless browser that can't reach anything else: `make test-site`."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tools.site import browser
from tools.site import build as site

HTML = site.BUILD / "html"
# matches requests to other hosts, so that only these are intercepted
ELSEWHERE = re.compile("^(?!http://127.0.0.1:|data:|file:)")
NOT_THERE = "404.html"  # GitHub's page for unknown URLs, which no page links to
PAGES = sorted(
    str(path.relative_to(HTML))
    for path in HTML.rglob("*.html")
    if "_static" not in path.parts and path.name != NOT_THERE
)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        pass

    def copyfile(self, *args: Any) -> None:
        with suppress(ConnectionError):  # the tab may close before the response is complete
            super().copyfile(*args)


class Server(ThreadingHTTPServer):
    request_queue_size = 128  # a page requests many pictures at once, and a busy machine accepts them slowly


def serve(folder: Path) -> Iterator[str]:
    """Serve a folder on a free port of this machine, and yield the server's address."""
    server = Server(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    assert len(PAGES) > 3, "the site isn't built: run make site"
    yield from serve(HTML)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    with browser.launch() as program:
        yield program


@pytest.fixture
def tab(chromium: Any) -> Iterator[Callable[..., Any]]:
    """Yield a function that opens a tab of a given width and colour scheme.

    The tab's list `errors` collects console messages and failed requests.
    """
    contexts = []

    def make(width: int = 1280, scheme: str = "light") -> Any:
        context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        context.set_default_timeout(90_000)  # ms, so that a busy machine doesn't fail the tests
        page, errors = context.new_page(), []

        def refuse(route: Any) -> None:
            errors.append(f"requests {route.request.url}")
            route.abort()

        def note_failure(request: Any) -> None:
            if request.failure != "net::ERR_ABORTED":  # the page no longer needs the resource
                errors.append(f"request failed ({request.failure}): {request.url}")

        context.route(ELSEWHERE, refuse)
        page.on("console", lambda m: errors.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("requestfailed", note_failure)
        page.on("response", lambda got: errors.append(f"{got.status} {got.url}") if got.status >= 400 else None)
        page.errors = errors
        return page

    yield make
    for context in contexts:
        context.close()
