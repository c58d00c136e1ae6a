"""A pipeline's schedule, played: when each stage does which job, how long it idles, how many microbatches it holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

SECONDS = {"F": 1, "B": 2}  # backward has two products for each one of forward
APART = {"F": 1, "B": 1, "W": 1}  # where these two are jobs of their own


@dataclass(frozen=True)
class Job:
    stage: int
    kind: str  # "F", "B", or "W" where the gradient by the weights is a job of its own
    microbatch: int
    part: int  # of the network; 0 to p - 1 where each stage has one
    start: float
    end: float


@dataclass(frozen=True)
class Schedule:
    jobs: tuple[Job, ...]
    stages: int
    rounds: int = 1  # parts of the network on each stage

    @property
    def end(self) -> float:
        return max(job.end for job in self.jobs)

    @property
    def idle(self) -> float:
        """The bubble: the share of all stages' time, until the last job ends, in which they do nothing."""
        return 1 - sum(job.end - job.start for job in self.jobs) / (self.stages * self.end)

    @property
    def live(self) -> list[float]:
        """The most microbatches that each stage holds at once: begun forward, and not done with the last job."""
        last = "W" if any(job.kind == "W" for job in self.jobs) else "B"
        most = []
        for stage in range(self.stages):
            own = [job for job in self.jobs if job.stage == stage]
            # at one moment what ends goes before what begins
            changes = sorted(
                [(j.end, -1) for j in own if j.kind == last] + [(j.start, 1) for j in own if j.kind == "F"]
            )
            most.append(max(sum(change for _, change in changes[: i + 1]) for i in range(len(changes))) / self.rounds)
        return [int(each) if each == int(each) else each for each in most]


def simulate(
    order: Callable[[int, int, int], Iterable[tuple]],
    p: int,
    m: int,
    *,
    rounds: int = 1,
    send: float = 0,
) -> Schedule:
    """Play p stages on m microbatches. `order(s, p, m)` lists the jobs of stage s: ("F", i), ("B", i), also ("W", i).

    A stage takes its jobs in this order, each as soon as what it needs has arrived: F needs F of the part before, B
    that of the part behind (the last one its own F), W its own B. With several `rounds` a stage has as many parts of
    the network, s, s + p ..., each job names its part, ("F", i, part), and takes a `rounds`-th of its
    seconds: 1 for F and 2 for B; with a W, 1 for each.

    Raises ValueError where a job is missing or stands twice, and where the stages wait for each other.
    """
    waiting = [[(*job, s) if rounds == 1 else tuple(job) for job in order(s, p, m)] for s in range(p)]
    kinds = sorted({job[0] for jobs in waiting for job in jobs})
    seconds = APART if "W" in kinds else SECONDS
    for s, jobs in enumerate(waiting):
        expected = Counter((kind, i, part) for kind in kinds for i in range(m) for part in range(s, p * rounds, p))
        if wrong := (Counter(jobs) - expected) or (expected - Counter(jobs)):
            kind, i, *part = next(iter(wrong))
            said = repr((kind, i, *part) if rounds > 1 else (kind, i))
            how = "is missing" if (kind, i, *part) not in jobs else "is too many"
            raise ValueError(f"stage {s} of {p}, {m} microbatches: {said} {how}")
    ends: dict[tuple, float] = {}
    free, played, last = [0.0] * p, [], p * rounds - 1
    while any(waiting):
        before = len(played)
        for s, jobs in enumerate(waiting):
            while jobs and (ready := _ready(jobs[0], ends, last, send)) is not None:
                job, start = jobs.pop(0), max(free[s], ready)
                free[s] = ends[job] = start + seconds[job[0]] / rounds
                played.append(Job(s, *job, start, free[s]))
        if len(played) == before:
            stuck = next(s for s, jobs in enumerate(waiting) if jobs)
            raise ValueError(f"every stage waits for another one; stage {stuck} for what {waiting[stuck][0][:2]} needs")
    return Schedule(tuple(played), p, rounds)


def _ready(job: tuple, ends: dict[tuple, float], last: int, send: float) -> float | None:
    """When what a job needs has arrived; None: it has not."""
    kind, i, part = job
    if kind == "F":
        return 0.0 if part == 0 else _arrived(ends.get(("F", i, part - 1)), send)
    if kind == "W":
        return ends.get(("B", i, part))
    if part == last:
        return ends.get(("F", i, part))
    return None if ("F", i, part) not in ends else _arrived(ends.get(("B", i, part + 1)), send)


def _arrived(end: float | None, send: float) -> float | None:
    return None if end is None else end + send
