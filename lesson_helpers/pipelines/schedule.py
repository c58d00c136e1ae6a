"""Simulate a pipeline schedule, and measure its bubble and how many microbatches each stage keeps in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

SECONDS = {"F": 1, "B": 2}  # a backward pass has two matrix products for each one in the forward pass
SECONDS_SPLIT = {"F": 1, "B": 1, "W": 1}  # if the backward pass's two products are separate jobs


@dataclass(frozen=True)
class Job:
    """One pass of one microbatch through one part of the network, with its start and end times."""

    stage: int
    kind: str  # "F": forward; "B": backward; "W": the weight gradient, if that's a job of its own
    microbatch: int
    part: int  # the part of the network, counted from the input
    start: float
    end: float


@dataclass(frozen=True)
class Schedule:
    """A simulated schedule: all jobs on all stages."""

    jobs: tuple[Job, ...]
    stages: int
    parts_per_stage: int = 1

    @property
    def end(self) -> float:
        """Return the time at which the last job ends."""
        return max(job.end for job in self.jobs)

    @property
    def bubble(self) -> float:
        """Return the fraction of the schedule's duration for which a stage is idle, on average."""
        return 1 - sum(job.end - job.start for job in self.jobs) / (self.stages * self.end)

    @property
    def peak_live(self) -> list[float]:
        """Return, for each stage, the largest number of microbatches whose activations it keeps in memory at once.

        A stage keeps a microbatch's activations from the start of the forward job to the end of the last backward job.
        With several parts per stage, each part counts as a fraction of a microbatch.
        """
        last = "W" if any(job.kind == "W" for job in self.jobs) else "B"
        peaks = []
        for stage in range(self.stages):
            jobs = [job for job in self.jobs if job.stage == stage]
            changes = [(job.end, -1) for job in jobs if job.kind == last]
            changes += [(job.start, 1) for job in jobs if job.kind == "F"]
            changes.sort()  # if a job ends when another starts, sort the end first
            count = peak = 0
            for _, change in changes:
                count += change
                peak = max(peak, count)
            peaks.append(peak / self.parts_per_stage)
        return [int(peak) if peak == int(peak) else peak for peak in peaks]


def simulate(
    order: Callable[[int, int, int], Iterable[tuple]],
    p: int,
    m: int,
    *,
    parts_per_stage: int = 1,
    send_time: float = 0,
) -> Schedule:
    """Simulate a pipeline of p stages on m microbatches.

    Args:
        order: a function such that `order(s, p, m)` returns the jobs of stage s, in order: ("F", i) for the forward
            pass of microbatch i, ("B", i) for its backward pass, and optionally ("W", i) for its weight gradient.
        parts_per_stage: the number of parts of the network on each stage. Stage s runs parts s, s + p, and so on. If
            there's more than one part per stage, each job names its part, as in ("F", i, part).
        send_time: the time in seconds that it takes to send a result from one stage to the next.

    A stage starts each job as soon as the previous one has ended and the job's input has arrived. For each microbatch,
    F waits for F of the previous part, B for B of the next part and F of the same part, and W for B of the same part.
    (The first part has no previous one, and the last has no next one.) For all parts of a stage together, F takes 1
    second and B takes 2; if there are W jobs, each kind takes 1.

    Raises ValueError if a job is missing, repeated or unknown, or if the unfinished stages wait for one another.
    """
    waiting: list[list[Any]] = [
        [(*job, s) if parts_per_stage == 1 else tuple(job) for job in order(s, p, m)] for s in range(p)
    ]
    kinds = sorted({job[0] for jobs in waiting for job in jobs})
    seconds = SECONDS_SPLIT if "W" in kinds else SECONDS
    parts = p * parts_per_stage
    for s, jobs in enumerate(waiting):
        expected = Counter((kind, i, part) for kind in kinds for i in range(m) for part in range(s, parts, p))
        if unequal := (Counter(jobs) - expected) or (expected - Counter(jobs)):
            job = next(iter(unequal))
            fault = "is missing" if job not in jobs else "is repeated or unknown"
            raise ValueError(f"stage {s} of {p}, {m} microbatches: {job if parts_per_stage > 1 else job[:2]} {fault}")
    ends: dict[tuple, float] = {}
    stage_free, jobs_done = [0.0] * p, []
    while any(waiting):
        count_before = len(jobs_done)
        for s, jobs in enumerate(waiting):
            while jobs and (ready := _input_ready(jobs[0], ends, parts - 1, send_time)) is not None:
                job, start = jobs.pop(0), max(stage_free[s], ready)
                kind, microbatch, part = job
                stage_free[s] = ends[job] = start + seconds[kind] / parts_per_stage
                jobs_done.append(Job(s, kind, microbatch, part, start, stage_free[s]))
        if len(jobs_done) == count_before:
            stuck = next(s for s, jobs in enumerate(waiting) if jobs)
            raise ValueError(f"deadlock: stage {stuck} waits for the input of {waiting[stuck][0][:2]}")
    return Schedule(tuple(jobs_done), p, parts_per_stage)


def _input_ready(job: tuple, ends: dict[tuple, float], last_part: int, send_time: float) -> float | None:
    """Return the time at which a job's input arrives, or None if the job that computes it hasn't run yet."""
    kind, i, part = job
    if kind == "W":
        return ends.get(("B", i, part))
    if kind == "F" and part == 0:
        return 0.0
    if kind == "B":
        own_forward = ends.get(("F", i, part))
        if part == last_part or own_forward is None:
            return own_forward
    end = ends.get((kind, i, part - 1 if kind == "F" else part + 1))
    return None if end is None else end + send_time
