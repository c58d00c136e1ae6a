"""Exercises and predictions for lesson 09, Read a profile."""

# pyright: reportArgumentType=false, reportCallIssue=false
# (Type checkers reject `max(..., key=d.get)`, a common idiom, because `get` may return None.)

from collections import Counter
from itertools import pairwise

from exercises.framework import Edit, Mistake, Prediction, exercise

psums = Prediction(
    5,
    "there's one psum in each of five steps, with one event on each device",
    {
        1: "there's one psum in each of five steps, and each is a separate event",
        40: "that's the total of all devices, and each device has an eighth",
        8: "that's the total of all devices in one step",
    },
    "events",
)
warm = Prediction(
    5,
    "each step's rate is a new value, and the rate is compiled into the program",
    {
        0: "the warm-up used five different rates; what does a static argument mean to the compiler?",
        1: "the argument that differs from the warm-up also differs in each of the five steps",
        10: "the five programs of the warm-up aren't in the trace",
        40: "one program runs on all eight devices",
    },
    "compilations",
)
shapes = Prediction(
    3,
    "three shapes need three programs, and each is cached",
    {
        1: "a program is compiled for a particular shape",
        6: "a program is cached, and found again the second time",
    },
    "programs",
)
puts = Prediction(
    15,
    "texts, counts and the rate are sent in each of five steps",
    {
        10: "the rate was part of the program, but now it's an argument that also comes from the host",
        3: "count all five steps",
        5: "what else does the host send in each step?",
        11: "a Python number is sent to the devices again in each call",
        120: "a put is one event, however many devices it goes to",
    },
    "puts",
)
waiting = Prediction(
    80,
    "eight devices could read 8 · 50 = 400 documents in the time of the step, but they read 80",
    {
        20: "that's the share of the time in which the devices read",
        87.5: "seven of eight devices wait, but first they read their own documents",
        91.4: "that's how long the seven wait, but the eighth doesn't",
        0.8: "that's the share, but not in percent",
    },
    "percent",
    rel_tol=0.005,
)
hidden = Prediction(
    248,
    "it's the first gather and then two products, because the second gather ends before the first product does",
    {
        321: "that's the sum of all four, but the second gather runs at the same time as the first product",
        174: "that's only the products, but the first gather runs before them",
        160: "that's only one layer, but the two products run one after the other",
        147: "that's the time of the two gathers only",
    },
    "µs",
    rel_tol=0.01,
)

# Each case below lists calls to one function. In the fourth case, some shapes share a size or a first dimension.
_CALL = ((8, 32), "float32", "P('X')", 0.1, True)
_CHANGES = {0: (16, 16), 1: "bfloat16", 2: "P()", 4: False}


def _make_calls(*changes):
    """Make a list of calls, each a copy of _CALL with some elements replaced."""
    return ([tuple(change.get(i, part) for i, part in enumerate(_CALL)) for change in changes],)


@exercise(
    "Two calls share a program if they agree in everything it was compiled for. For the rate, that's "
    "only the type. So make a set.",
    cases=[
        _make_calls({}, {3: 0.05}, {3: 0.025}),
        _make_calls({}, {3: 1}, {3: 2}, {}),
        _make_calls({}, {4: False}, {}, {4: False, 3: 0.7}),
        _make_calls({}, {0: (16, 16)}, {0: (8, 64)}, {0: (2, 32)}, {}, {0: (32, 8)}, {0: (8, 32, 1)}),
        _make_calls({}, {1: "bfloat16"}, {1: "float32"}, {1: "bfloat16"}),
        _make_calls({}, {2: "P()"}, {2: "P(None, 'X')"}, {2: "P()"}),
        _make_calls(
            *({place: value} for place, value in _CHANGES.items()), {**_CHANGES, 3: 3}, {**_CHANGES, 3: 4}, {4: False}
        ),
        ([],),
    ],
    mistakes=[
        Mistake(Edit("type(rate)", "rate"), "for a traced number only the type counts, not the value"),
        Mistake(Edit("type(rate),", ""), "the type of a traced number counts: 1 becomes an int32, and 0.1 a float32"),
        Mistake(Edit(", training) for", ") for"), "each value of a static argument needs a program of its own"),
        Mistake(Edit("(*arrays", "(*arrays[1:]"), "a different shape needs a different program"),
        Mistake(Edit("(*arrays", "(*arrays[:2]"), "a different sharding needs a different program"),
        Mistake(
            [Edit("len({", "len(["), Edit("in calls})", "in calls])")],
            "a program that was compiled once stays in the cache",
        ),
    ],
)
def compilations(calls):
    """Return how many of the (shape, dtype, sharding, rate, training) calls compile."""
    return len({(*arrays, type(rate), training) for *arrays, rate, training in calls})


def _make_step(**rows):
    """Make one step's events, in mixed order. The last bar of each device is its all-reduce; the others compute."""
    bars = []
    for device, (*computing, meeting) in rows.items():
        bars += [(int(device[1:]), f"fusion.{i % 2}", *bar) for i, bar in enumerate(computing)]
        bars.append((int(device[1:]), "all-reduce.7", *meeting))
    return sorted(bars, key=lambda bar: (bar[2] * 7 % 5, bar))


# The late device never has the longest all-reduce, the longest single bar, or the last start or end of any bar.
_DATA = _make_step(  # device 3 runs four operations in 147 µs, and device 0 three in 165 µs, but the count decides
    d0=[(0, 55), (55, 110), (170, 225), (110, 170)],
    d3=[(8, 50), (50, 80), (80, 115), (115, 155), (155, 170)],
    d5=[(2, 62), (64, 120), (171, 190), (120, 170)],
)
_CHIP = _make_step(  # device 4 runs three operations, like the others, in 122 µs, but none of them is the longest
    d1=[(0, 30), (30, 60), (70, 111), (111, 150)],
    d2=[(0, 70), (70, 90), (151, 170), (90, 150)],
    d4=[(5, 45), (45, 85), (88, 130), (130, 150)],
    d6=[(12, 40), (40, 70), (80, 126), (126, 151)],
)
_HOST = _make_step(  # device 7 starts late, but doesn't compute for longer than the others
    d7=[(60, 90), (90, 118), (119, 141), (141, 160)],
    d0=[(0, 25), (25, 50), (50, 80), (80, 161)],
    d1=[(3, 33), (33, 55), (163, 190), (55, 160)],
)
_HELD = _make_step(  # device 2 starts first, but then pauses; device 9 runs more operations and isn't late
    d2=[(0, 20), (70, 95), (95, 112)],
    d9=[(4, 24), (24, 44), (44, 64), (64, 80), (80, 113)],
)
_SAME = _make_step(  # devices 6 and 8 run equally many operations, but those of device 6 take the longest
    d6=[(1, 41), (41, 90), (90, 120)],
    d8=[(0, 30), (30, 78), (78, 121)],
    d3=[(0, 74), (74, 120)],
)
_MORE = _make_step(  # device 1 runs more operations, so it also computes for longer
    d0=[(0, 40), (45, 90), (90, 121)],
    d1=[(0, 30), (30, 60), (60, 101), (101, 120)],
)


@exercise(
    "The late device starts its all-reduce last. Count the other events of each device, and add up their time.",
    cases=[(_MORE,), (_SAME,), (_HELD,), (_HOST,), (_CHIP,), (_DATA,)],
    mistakes=[
        Mistake(
            Edit("late = max(arrives", "late = min(arrives"),
            "the first to arrive has the longest all-reduce, because it waits",
        ),
        Mistake(
            Edit("key=arrives.get", "key=busy.get"),
            "that's the device that computes the longest, but a different one may start its all-reduce later",
        ),
        Mistake(
            Edit("key=arrives.get", "key=ran.get"),
            "that's the device that runs the most operations, but a different one may start its all-reduce later",
        ),
        Mistake(
            Edit("ran[late] > max(", "ran[late] >= max("),
            "a device that runs as many operations as the others doesn't run more",
        ),
        Mistake(
            Edit("else:\n            ran", "if True:\n            ran"),
            "an all-reduce isn't computation: it's long on the devices that wait",
        ),
        Mistake(
            Edit(
                'return late, "data"',
                'return late, "chip" if busy[late] > max(busy[device] for device in others) else "data"',
            ),
            "check the number of operations first, because more operations also take longer",
        ),
    ],
)
def diagnose(events):
    """Return the device that the others wait for, and "data", "chip" or "host"."""
    ran, busy, arrives = Counter(), Counter(), {}
    for device, name, start, end in events:
        if name.startswith("all-reduce"):
            arrives[device] = start
        else:
            ran[device] += 1
            busy[device] += end - start
    late = max(arrives, key=arrives.get)
    others = [device for device in arrives if device != late]
    if ran[late] > max(ran[device] for device in others):
        return late, "data"
    if busy[late] > max(busy[device] for device in others):
        return late, "chip"
    return late, "host"


_COMMUNICATION = "communication"


def _subtract_all(bars):
    return sum(end - start if kind == _COMMUNICATION else start - end for kind, start, end in bars)


def _sum_one_by_one(bars):
    computing = [bar for bar in bars if bar[0] == "compute"]
    return sum(exposed.function([bar, *computing]) for bar in bars if bar[0] == _COMMUNICATION)


@exercise(
    "Split the time at every start and end. For each piece, is it covered by a communication bar and "
    "by no compute bar?",
    cases=[
        ([(_COMMUNICATION, 3, 10.5)],),
        ([("compute", 5, 9)],),
        ([(_COMMUNICATION, 0, 10), ("compute", 4, 6.5)],),
        ([("compute", 7, 9), (_COMMUNICATION, 0, 6), (_COMMUNICATION, 4, 14)],),
        (
            [
                (_COMMUNICATION, 10, 30),
                ("compute", 0, 14),
                ("compute", 12, 17),
                (_COMMUNICATION, 40, 41.5),
                ("compute", 20, 24),
            ],
        ),
        ([("compute", 1, 50), (_COMMUNICATION, 7, 19)],),
        ([],),
    ],
    mistakes=[
        Mistake(
            Edit('covering == {"communication"}', '"communication" in covering'),
            "you also count communication that's hidden behind a product",
        ),
        Mistake(
            Edit('covering == {"communication"}', 'covering != {"compute"} and len(covering) < 2'),
            "in a gap the chip does nothing, so it isn't communicating",
        ),
        Mistake(Edit('covering == {"communication"}', "len(covering) == 2"), "that's the communication that is hidden"),
        Mistake(
            _subtract_all,
            "computation hides only communication at the same time, but you subtract all of the computation",
        ),
        Mistake(_sum_one_by_one, "where two gathers overlap, their time counts only once"),
    ],
)
def exposed(bars):
    """Return how many µs a chip communicates without computing.

    Each bar is (kind, start, end).
    """
    moments = sorted({moment for _, *ends in bars for moment in ends})
    total = 0
    for start, end in pairwise(moments):
        covering = {kind for kind, a, b in bars if a <= start and end <= b}
        if covering == {"communication"}:
            total += end - start
    return total
