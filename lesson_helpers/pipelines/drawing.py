"""Draw pipeline schedules, with the microbatch that each stage works on at any time, and the stage's idle times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from lesson_helpers.pipelines.schedule import Schedule
from utils.show.notebook_figure import COLORS, Picture


class _Style(NamedTuple):
    label: str
    fills: tuple[str, str]  # the box colours, which alternate between a stage's parts
    inks: tuple[str, str]  # the colours of the numbers in these boxes


_STYLES = {
    "F": _Style("forward", (COLORS[0], COLORS[4]), ("white", "black")),
    "B": _Style("backward", (COLORS[1], COLORS[6]), ("black", "black")),
    "W": _Style("weight gradient", (COLORS[2], COLORS[2]), ("white", "white")),
}
_IDLE = "#dddddd"


def draw_schedules(schedules: Mapping[str, Schedule], xlabel: str = "ticks") -> Picture:
    """Draw a panel for each titled schedule, with a row for each stage and a box for each job. Idle time is grey.

    Raises ValueError if there's nothing to draw.
    """
    if not schedules:
        raise ValueError("nothing to draw: give a title and a schedule, as in {'GPipe': simulate(gpipe, 4, 8)}")
    heights = [schedule.stages for schedule in schedules.values()]
    figure = Figure(figsize=(9.0, 0.34 * sum(heights) + 0.62 * len(schedules) + 0.5), layout="constrained")
    panels = figure.subplots(len(schedules), 1, squeeze=False, sharex=True, height_ratios=heights)[:, 0]
    end = max(schedule.end for schedule in schedules.values())
    for axes, (title, schedule) in zip(panels, schedules.items(), strict=True):
        _draw(axes, title, schedule, end)
    panels[-1].set_xlabel(xlabel)
    panels[-1].set_xlim(0, end)
    panels[-1].xaxis.set_major_locator(MaxNLocator(integer=True))
    drawn = {job.kind for schedule in schedules.values() for job in schedule.jobs}
    handles = [Patch(facecolor=style.fills[0], label=style.label) for kind, style in _STYLES.items() if kind in drawn]
    handles.append(Patch(facecolor=_IDLE, label="idle"))
    figure.legend(handles=handles, loc="outside upper right", ncols=len(handles), frameon=False, fontsize=9)
    descriptions = "; ".join(f"{title}: {_describe(schedule)}" for title, schedule in schedules.items())
    return Picture(figure, f"Which stage works on which microbatch, in {xlabel}. {descriptions}.")


def _draw(axes: Axes, title: str, schedule: Schedule, end: float) -> None:
    axes.barh(range(schedule.stages), schedule.end, 0.92, color=_IDLE)
    for job in schedule.jobs:
        _, fills, inks = _STYLES[job.kind]
        odd, length = job.part // schedule.stages % 2, job.end - job.start
        axes.barh(job.stage, length, 0.92, job.start, color=fills[odd], edgecolor="white", linewidth=0.8)
        if length > 0.008 * end * len(str(job.microbatch)):  # the number fits in the box
            middle = job.start + length / 2
            axes.text(
                middle, job.stage, str(job.microbatch), ha="center", va="center_baseline", fontsize=8, color=inks[odd]
            )
    axes.set(ylim=(schedule.stages - 0.5, -0.5), ylabel="stage", yticks=range(schedule.stages))
    axes.set_title(title, loc="left", fontsize=10)
    axes.tick_params(axis="y", length=0)
    axes.spines[:].set_visible(False)


def _describe(schedule: Schedule) -> str:
    """Describe each stage's jobs and idle times, as in 'stage 0 F 0 to 3, idle 2, B 0'."""
    stages = [f"stage {stage} {', '.join(_describe_stage(schedule, stage))}" for stage in range(schedule.stages)]
    return f"done at {schedule.end:g}, {100 * schedule.bubble:.0f}% idle; " + "; ".join(stages)


def _describe_stage(schedule: Schedule, stage: int) -> Iterator[str]:
    """Yield descriptions of a stage's idle times, and of its runs of jobs of one kind on consecutive microbatches."""
    kind, first, last, time = "", 0, 0, 0.0

    def sequence() -> list[str]:
        return [f"{kind} {first}" if first == last else f"{kind} {first} to {last}"] * bool(kind)

    for job in sorted((job for job in schedule.jobs if job.stage == stage), key=lambda job: job.start):
        if job.start > time or job.kind != kind or abs(job.microbatch - last) != 1:
            yield from sequence()
            kind, first = job.kind, job.microbatch
            if job.start > time:
                yield f"idle {job.start - time:g}"
        last, time = job.microbatch, job.end
    yield from sequence()
    if schedule.end > time:
        yield f"idle {schedule.end - time:g}"
