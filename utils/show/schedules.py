"""Schedules of a pipeline, drawn: which stage works on which microbatch when, and where it idles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from utils.show.picture import COLORS, Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LOOKS = {  # kind: its word, its colour in even and odd rounds, the colour of its number
    "F": ("forward", (COLORS[0], COLORS[4]), ("white", "black")),
    "B": ("backward", (COLORS[1], COLORS[6]), ("black", "black")),
    "W": ("gradient by the weights", (COLORS[2], COLORS[2]), ("white", "white")),
}
_IDLE = "#dddddd"


def draw_schedules(played: dict[str, Any], xlabel: str = "ticks") -> Picture:
    """Draw schedules (`count.schedule.Schedule`), a panel for each title: a row is a stage, a box a job, grey is idle.

    Raises ValueError for nothing to draw.
    """
    if not played:
        raise ValueError("nothing to draw: give a title and a schedule, as in {'GPipe': simulate(gpipe, 4, 8)}")
    stages = sum(each.stages for each in played.values())
    figure = Figure(figsize=(9.0, 0.34 * stages + 0.62 * len(played) + 0.5), layout="constrained")
    heights = [each.stages for each in played.values()]
    panels = figure.subplots(len(played), 1, squeeze=False, sharex=True, height_ratios=heights)[:, 0]
    end = max(each.end for each in played.values())
    for axes, (title, each) in zip(panels, played.items(), strict=True):
        _draw(axes, title, each, end)
    panels[-1].set_xlabel(xlabel)
    panels[-1].set_xlim(0, end)
    panels[-1].xaxis.set_major_locator(MaxNLocator(integer=True))
    kinds = [kind for kind in _LOOKS if any(job.kind == kind for each in played.values() for job in each.jobs)]
    handles = [Patch(facecolor=_LOOKS[kind][1][0], label=_LOOKS[kind][0]) for kind in kinds]
    handles.append(Patch(facecolor=_IDLE, label="idle"))
    figure.legend(handles=handles, loc="outside upper right", ncols=len(handles), frameon=False, fontsize=9)
    said = "; ".join(f"{title}: {_told(each)}" for title, each in played.items())
    return Picture(figure, f"Which stage works on which microbatch, in {xlabel}. {said}.")


def _draw(axes: Axes, title: str, played: Any, end: float) -> None:
    axes.barh(range(played.stages), played.end, 0.92, color=_IDLE)
    for job in played.jobs:
        _, fills, inks = _LOOKS[job.kind]
        odd, length = job.part // played.stages % 2, job.end - job.start
        axes.barh(job.stage, length, 0.92, job.start, color=fills[odd], edgecolor="white", linewidth=0.8)
        if length > 0.008 * end * len(str(job.microbatch)):
            middle = job.start + length / 2
            axes.text(middle, job.stage, job.microbatch, ha="center", va="center_baseline", fontsize=8, color=inks[odd])
    axes.set(ylim=(played.stages - 0.5, -0.5), ylabel="stage", yticks=range(played.stages))
    axes.set_title(title, loc="left", fontsize=10)
    axes.tick_params(axis="y", length=0)
    axes.spines[:].set_visible(False)


def _told(played: Any) -> str:
    """For the description: what each stage does one after the other, runs of one kind together, and its idle time."""
    rows = []
    for stage in range(played.stages):
        jobs = sorted((job for job in played.jobs if job.stage == stage), key=lambda job: job.start)
        parts: list[str] = []
        at, runs = 0.0, []
        for job in jobs:
            if job.start > at:
                runs.append(["idle", [job.start - at]])
            if not runs or runs[-1][0] != job.kind or abs(job.microbatch - runs[-1][1][-1]) != 1:
                runs.append([job.kind, []])
            runs[-1][1].append(job.microbatch)
            at = job.end
        if played.end > at:
            runs.append(["idle", [played.end - at]])
        for kind, found in runs:
            of = f"{found[0]}" if len(found) == 1 else f"{found[0]} to {found[-1]}"
            parts.append(f"idle {found[0]:g}" if kind == "idle" else f"{kind} {of}")
        rows.append(f"stage {stage} {', '.join(parts)}")
    return f"all done at {played.end:g}, {100 * played.idle:.0f} % idle; " + "; ".join(rows)
