"""Generate the routes through the course: the tables in the README and START.md, and the site's cards.

Each step of a route is a complete lesson or some sections of one. A lesson's plan states how many minutes the lesson
takes, and tools/lessons/reading_time.py estimates how many minutes sections take.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tools import NUMBER
from tools.lessons import notebooks, reading_time, readme

WORKSHOPS = "one or two hours, half a day, one or two days"  # the lengths of the workshops in teach/workshop.md
BEGIN, END = "<!-- Written by make stamp, from tools/lessons/course_routes.py -->\n", "<!-- These are the routes -->"


@dataclass(frozen=True)
class Route:
    """The lessons and sections for readers with a particular need."""

    key: str  # in URLs, as in 02_sharding.html?route=fsdp
    need: str
    outcome: str  # a sentence for the site's card, on what the reader can do afterwards
    steps: dict[str, tuple[str, ...]]  # the sections to read, by lesson; an empty tuple means the complete lesson
    assumes: tuple[str, ...] = ()  # lessons that the reader should already know
    note: str = ""  # Markdown, with links that are relative to README.md


ROUTES = (
    Route(
        "new",
        "New to JAX",
        "Port a NumPy program, and know what jit, grad and vmap see of it.",
        {"00": ()},
        note="then 01, 02 and 03",
    ),
    Route(
        "sharding",
        "Sharding in two hours",
        "Split arrays over eight devices, and count what the compiler sends.",
        {"02": (), "03": ()},
        assumes=("00",),
    ),
    Route(
        "fsdp",
        "FSDP by Monday",
        "Train a model whose weights don't fit on one device.",
        {
            "02": (
                "A mesh gives devices names",
                "A spec splits an array",
                "What a spec leaves out is copied",
                "Shard a whole model by name",
            ),
            "03": (
                "Place the data, and jit splits the work",
                "Split the contracting dimension",
                "Train: the gradient sends, too",
            ),
            "05": ("Write the per-device program", "Let the devices add up"),
            "07": ("Four cases name the collective", "The table to keep"),
            "10": (),
        },
        assumes=("00",),
        note="and its [script](examples/10_fsdp.py) to take to work",
    ),
    Route(
        "old",
        "Code from 2022 (`pmap`, `xmap`) that no longer runs",
        "Get from an error message to the current API.",
        {"90": ()},
        assumes=("04",),
        note="or paste your code [into the site]({site}/old_code.html), where it stays in your browser",
    ),
    Route(
        "machines",
        "Several machines",
        "Start one program on many hosts, and survive the loss of one.",
        {"16": (), "17": ()},
        assumes=("03", "06", "10"),
        note="and [a script to copy](examples/README.md)",
    ),
    Route(
        "plan",
        "Choosing hardware and planning a run",
        "Compare chips and plans on paper, and compile for chips that you don't have.",
        {"07": (), "08": (), "19": ()},
        assumes=("03", "04", "05", "10", "11"),
    ),
)


def prerequisites(number: str) -> list[str]:
    """Return the numbers of the lessons that a lesson's *You need* paragraph lists as prerequisites."""
    plan = next(cell.source for cell in notebooks.read(notebooks.lesson(number)).cells if cell.id == "plan")
    [paragraph] = re.findall(r"^\*\*You need\*\*.*$", plan, re.M)
    paragraph = re.sub(r"\([^()]*\)", "", paragraph)  # drop parentheses, which state what the lessons teach
    named = re.findall(rf"\blesson ({NUMBER})|\blessons ({NUMBER}(?:(?:, | and ){NUMBER})+)", paragraph)
    return [other for one, several in named for other in re.findall(NUMBER, one or several)]


def minutes(route: Route) -> int:
    """Return how many minutes a route takes, excluding its exercises."""
    total = 0
    for number, sections in route.steps.items():
        path = notebooks.lesson(number)
        total += (
            reading_time.section_minutes(notebooks.read(path).cells, sections) if sections else readme.row(path).minutes
        )
    return total


def table(copies: bool = False, setup: str | None = None) -> str:
    """Return a Markdown table of the routes, followed by lists of the sections to read on routes that skip some.

    A row contains the reader's need, links that open the lessons in Colab, the assumed lessons, and the minutes. With
    `copies`, for START.md, the links open the lessons in the same folder. `setup` is as in `readme.with_lesson_tables`.
    """
    owner, name = notebooks.repository(setup)[0].split("/")
    head = "| You want | Lessons | Minutes + exercises |"
    rows, parts = [head if copies else head.replace("Lessons", "Lessons (click to open in Colab)"), "|---|---|---|"], []
    for route in ROUTES:
        links = [_link(number, copies, setup) for number in route.steps]
        note = "" if copies else route.note.format(site=f"https://{owner}.github.io/{name}")
        assumed = _assumed(route, [_link(number, copies, setup) for number in route.assumes])
        lessons = "<br>".join(filter(None, ("<br>".join(links) + assumed, note)))
        rows.append(f"| **{route.need}** | {lessons} | {_time(route)} |")
        if named := [
            f"- in {number}: {_join([f'*{t}*' for t in read])}" for number, read in route.steps.items() if read
        ]:
            complete = _join([number for number, read in route.steps.items() if not read])
            summary = f"<details><summary><b>{route.need}</b>: which sections to read</summary>"
            how = f"Run each lesson down to the last section listed. Read these sections, and all of {complete}:"
            parts += [summary, "", how, "", *named, "", "</details>"]
    all_rows = readme.rows()
    first, hours = _link(all_rows[0].number, copies, setup), readme.hours(all_rows)
    rows.append(f"| **The whole course** | {first} to the last | {hours} hours in all |")
    first = readme.row(notebooks.lesson("02"))
    first_try = f"{_link('02', copies, setup)} ({first.minutes} + {first.exercise_minutes} minutes)"
    guide = f"the [workshop guide](teach/workshop.md); first try<br>{first_try}"
    rows += [] if copies else [f"| **For teachers** | {guide} | {WORKSHOPS} |"]
    return "\n".join([*rows, "", *parts])


def _time(route: Route, unit: str = "") -> str:
    """Format a route's minutes, adding those of its exercises if the route includes only complete lessons."""
    if any(route.steps.values()):
        return f"{minutes(route)}{unit} (most lessons only in part)"
    exercises = sum(readme.row(notebooks.lesson(number)).exercise_minutes for number in route.steps)
    return f"{minutes(route)}{unit} + {exercises}{unit} of exercises" if unit else f"{minutes(route)} + {exercises}"


def _assumed(route: Route, names: list[str]) -> str:
    """Return a clause such as " (if you know 03 and 06)", or "" for a route that assumes no lesson."""
    return f" (if you know {_join(names)})" if route.assumes else ""


def _url(number: str, copies: bool, setup: str | None) -> str:
    name = notebooks.lesson(number).name
    return name if copies else notebooks.colab_url(f"notebooks/{name}", setup)


def _link(number: str, copies: bool, setup: str | None) -> str:
    """Return a link with a lesson's number and short title."""
    return f"[{number} {_short_title(number)}]({_url(number, copies, setup)})"


def _short_title(number: str) -> str:
    return readme.row(notebooks.lesson(number)).short_title


def with_route_tables(text: str, setup: str | None = None) -> str:
    """Return the README's text with its table of routes updated. Raises ValueError if it has no place for the table."""
    return readme.replace_once(
        text, rf"(?s){re.escape(BEGIN)}.*{re.escape(END)}", f"{BEGIN}\n{table(setup=setup)}\n\n{END}"
    )


def cards() -> str:
    """Return the routes as cards for the site's front page, with links that pass the route's key to the lessons."""
    items = []
    for route in ROUTES:
        steps = [
            f"<a href='notebooks/{notebooks.lesson(number).stem}.html?route={route.key}'>{_named(number)}</a>"
            for number in route.steps
        ]
        steps += ["<a href='old_code.html'>Paste your code</a>"] if route.key == "old" else []
        assumed = _assumed(route, [_page(number) for number in route.assumes])
        items.append(_card(route.need, route.outcome, steps, f"{_time(route, ' min')}{assumed}"))
    all_rows = readme.rows()
    first = f"<a href='notebooks/{notebooks.lessons()[0].stem}.html'>{_named(all_rows[0].number)}</a>"
    every = f"All {len(all_rows)} lessons in order, from NumPy to a training plan for 64 chips."
    items.append(_card("The whole course", every, [first], f"{readme.hours(all_rows)} hours"))
    guide = "<a href='teach/workshop.html'>The workshop guide</a>"
    plans = "Plans to the minute, with the answers to expect. First try lesson 02 yourself."
    items.append(_card("For teachers", plans, [guide, _page("02")], WORKSHOPS))
    return "\n".join(["<ol class='ways routes'>", *items, "</ol>"])


def _named(number: str) -> str:
    return f"<span class='number'>{number}</span> <span class='name'>{html.escape(_short_title(number))}</span>"


def _page(number: str) -> str:
    return f"<a href='notebooks/{notebooks.lesson(number).stem}.html'>{_named(number)}</a>"


def _card(need: str, outcome: str, steps: list[str], time: str) -> str:
    return (
        f"<li><strong>{_html(need)}</strong><span class='promise'>{html.escape(outcome, quote=False)}</span>"
        f"<span class='steps'>{''.join(steps)}</span><span class='minutes'>{time}</span></li>"
    )


def route_positions(number: str) -> Iterator[str]:
    """Yield HTML with a lesson's position on each of its routes. page_behavior.js shows it for the chosen route."""
    for route in ROUTES:
        if number not in route.steps:
            continue
        order = list(route.steps)
        at, sections = order.index(number), route.steps[number]
        name = _html(route.need) + _assumed(route, [_named(other) for other in route.assumes])
        text = f"Your route, {name}: lesson {at + 1} of {len(order)}."
        text += f" Read {_join([f'<em>{html.escape(title)}</em>' for title in sections])}." if sections else ""
        if at + 1 < len(order):
            then = notebooks.lesson(order[at + 1]).stem
            text += f" Next: <a href='{then}.html?route={route.key}'>{_named(order[at + 1])}</a>."
        yield f"<p class='route' data-route='{route.key}' hidden>{text}</p>"


def _html(need: str) -> str:
    return re.sub(r"`(.+?)`", r"<code>\1</code>", html.escape(need))


def _join(names: list[str]) -> str:
    """Join names in a sentence, as in "02, 03 and 05"."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
