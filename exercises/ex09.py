"""Exercises and predictions of lesson 09, Read a profile."""

from collections import Counter
from itertools import pairwise

from exercises.framework import Edit, Mistake, Prediction, exercise

psums = Prediction(
    5,
    "one psum in each of five steps; an event for each device that runs it",
    {
        1: "one psum, and five steps: each is an event of its own",
        40: "that is all devices together; each device has an eighth",
        8: "that is one step, all devices together",
    },
    "events",
)
warm = Prediction(
    5,
    "the rate of each step is a value that was never seen before, and it is part of the program",
    {
        0: "the warm-up had five other rates; what is a static argument to the compiler?",
        1: "what differs from the warm-up differs in each of the five steps, too",
        10: "the five programs of the warm-up are not in the trace",
        40: "one program serves all eight devices",
    },
    "compilations",
)
shapes = Prediction(
    3,
    "three shapes are three programs, and each is kept",
    {
        1: "the shape is part of what a program is compiled for",
        6: "a program is kept, and found the second time",
    },
    "programs",
)
puts = Prediction(
    15,
    "texts, counts and the rate, in each of five steps",
    {
        10: "the rate was part of the program; now it is an argument that comes from the host, too",
        3: "in each of five steps",
        5: "what else does the host hand over in each step?",
        11: "a number of Python goes to the devices anew in each call",
        120: "a put is one event, however many devices it concerns",
    },
    "puts",
)
waiting = Prediction(
    80,
    "the step takes eight devices the time of 8 · 50 = 400 documents, and they read 80",
    {
        20: "that is the part in which they read",
        87.5: "seven of eight devices wait, but first they read their own documents",
        91.4: "the seven wait so; the eighth does not wait",
        0.8: "that is a share, not percent",
    },
    "percent",
    within=0.005,
)
hidden = Prediction(
    248,
    "the first gather, then two products; the second gather is over before the first product is",
    {
        321: "that is one after the other; the second gather runs beside the first product",
        174: "that is the products alone; the first gather runs before them",
        160: "that is one layer; two products follow each other",
        147: "that is the gathers alone",
    },
    "µs",
    within=0.01,
)

# Calls of one function; of the fourth list the shapes have one size, or one first number.
_A = ((8, 32), "float32", "P('X')", 0.1, True)
_OTHER = {0: (16, 16), 1: "bfloat16", 2: "P()", 4: False}


def _calls(*changes):
    """Each call is _A with some places changed."""
    return ([tuple(change.get(i, part) for i, part in enumerate(_A)) for change in changes],)


@exercise(
    "Two calls share a program where all agrees that it was compiled for. Of the rate that is its type. So make a set.",
    cases=[
        _calls({}, {3: 0.05}, {3: 0.025}),
        _calls({}, {3: 1}, {3: 2}, {}),
        _calls({}, {4: False}, {}, {4: False, 3: 0.7}),
        _calls({}, {0: (16, 16)}, {0: (8, 64)}, {0: (2, 32)}, {}, {0: (32, 8)}, {0: (8, 32, 1)}),
        _calls({}, {1: "bfloat16"}, {1: "float32"}, {1: "bfloat16"}),
        _calls({}, {2: "P()"}, {2: "P(None, 'X')"}, {2: "P()"}),
        _calls(*({place: value} for place, value in _OTHER.items()), {**_OTHER, 3: 3}, {**_OTHER, 3: 4}, {4: False}),
        ([],),
    ],
    mistakes=[
        Mistake(Edit("type(rate)", "rate"), "of a traced number the type counts, not the value"),
        Mistake(Edit("type(rate),", ""), "of a traced number the type counts: 1 becomes an int32, 0.1 a float32"),
        Mistake(Edit(", training) for", ") for"), "each value of a static argument is a program of its own"),
        Mistake(Edit("(*arrays", "(*arrays[1:]"), "another shape is another program"),
        Mistake(Edit("(*arrays", "(*arrays[:2]"), "another layout is another program"),
        Mistake([Edit("len({", "len(["), Edit("in calls})", "in calls])")], "a program that was compiled once is kept"),
    ],
)
def compilations(calls):
    """Return how many calls compile. A call: (shape, dtype, layout, rate, training)."""
    return len({(*arrays, type(rate), training) for *arrays, rate, training in calls})


def _step(**rows):
    """Events of a step, devices mixed. Of each device its bars of computing, and the all-reduce as the list's last."""
    bars = []
    for device, (*computing, meeting) in rows.items():
        bars += [(int(device[1:]), f"fusion.{i % 2}", *bar) for i, bar in enumerate(computing)]
        bars.append((int(device[1:]), "all-reduce.7", *meeting))
    return sorted(bars, key=lambda bar: (bar[2] * 7 % 5, bar))


# In no case has the late device the longest all-reduce, the longest single bar, or the last start or end of all bars.
_DATA = _step(  # 3 runs four operations of 147 µs in all, and 0 three of 165: more come before longer
    d0=[(0, 55), (55, 110), (170, 225), (110, 170)],
    d3=[(8, 50), (50, 80), (80, 115), (115, 155), (155, 170)],
    d5=[(2, 62), (64, 120), (171, 190), (120, 170)],
)
_CHIP = _step(  # 4 runs three operations of 122 µs in all, as many as the others, and none is the longest
    d1=[(0, 30), (30, 60), (70, 111), (111, 150)],
    d2=[(0, 70), (70, 90), (151, 170), (90, 150)],
    d4=[(5, 45), (45, 85), (88, 130), (130, 150)],
    d6=[(12, 40), (40, 70), (80, 126), (126, 151)],
)
_HOST = _step(  # 7 begins late, and computes no longer than the others
    d7=[(60, 90), (90, 118), (119, 141), (141, 160)],
    d0=[(0, 25), (25, 50), (50, 80), (80, 161)],
    d1=[(3, 33), (33, 55), (163, 190), (55, 160)],
)
_HELD = _step(  # 2 begins first, and is held up in between; 9 runs more operations and is not late
    d2=[(0, 20), (70, 95), (95, 112)],
    d9=[(4, 24), (24, 44), (44, 64), (64, 80), (80, 113)],
)
_SAME = _step(  # 6 runs as many operations as 8, which is not more; they take longer
    d6=[(1, 41), (41, 90), (90, 120)],
    d8=[(0, 30), (30, 78), (78, 121)],
    d3=[(0, 74), (74, 120)],
)
_MORE = _step(  # 1 runs more operations, so they take longer as well
    d0=[(0, 40), (45, 90), (90, 121)],
    d1=[(0, 30), (30, 60), (60, 101), (101, 120)],
)


@exercise(
    "The late device has the greatest start of an all-reduce. Count the other events of each device, and add up their time.",
    cases=[(_MORE,), (_SAME,), (_HELD,), (_HOST,), (_CHIP,), (_DATA,)],
    mistakes=[
        Mistake(
            Edit("late = max(arrives", "late = min(arrives"),
            "the first to arrive has the longest all-reduce, and waits",
        ),
        Mistake(
            Edit("key=arrives.get", "key=busy.get"),
            "the device that computes most is another one; others may begin later",
        ),
        Mistake(
            Edit("key=arrives.get", "key=ran.get"),
            "the device that runs most operations is another one; others may begin later",
        ),
        Mistake(Edit("ran[late] > max(", "ran[late] >= max("), "as many operations are not more"),
        Mistake(
            Edit("else:\n            ran", "if True:\n            ran"),
            "the all-reduce is no computing: who waits has a long one",
        ),
        Mistake(
            Edit(
                'return late, "data"',
                'return late, "chip" if busy[late] > max(busy[device] for device in others) else "data"',
            ),
            "more operations come first: they take longer as well",
        ),
    ],
)
def diagnose(events):
    """Return (device that the others wait for, "data", "chip" or "host")."""
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


_SENDS = "communication"


def _subtracted(bars):
    return sum(end - start if kind == _SENDS else start - end for kind, start, end in bars)


def _one_by_one(bars):
    computing = [bar for bar in bars if bar[0] == "compute"]
    return sum(exposed.function([bar, *computing]) for bar in bars if bar[0] == _SENDS)


@exercise(
    "Cut the time at every start and end. Of each piece ask: does a bar of sending cover it, and none of computing?",
    cases=[
        ([(_SENDS, 3, 10.5)],),
        ([("compute", 5, 9)],),
        ([(_SENDS, 0, 10), ("compute", 4, 6.5)],),
        ([("compute", 7, 9), (_SENDS, 0, 6), (_SENDS, 4, 14)],),
        ([(_SENDS, 10, 30), ("compute", 0, 14), ("compute", 12, 17), (_SENDS, 40, 41.5), ("compute", 20, 24)],),
        ([("compute", 1, 50), (_SENDS, 7, 19)],),
        ([],),
    ],
    mistakes=[
        Mistake(
            Edit('covering == {"communication"}', '"communication" in covering'), "you count also what a product hides"
        ),
        Mistake(
            Edit('covering == {"communication"}', 'covering != {"compute"} and len(covering) < 2'),
            "a gap, in which the chip does nothing, is no sending",
        ),
        Mistake(Edit('covering == {"communication"}', "len(covering) == 2"), "that is what is hidden"),
        Mistake(_subtracted, "computing hides what is sent at the same time; you subtract all of it"),
        Mistake(_one_by_one, "where two gathers overlap, their time counts once"),
    ],
)
def exposed(bars):
    """Return the µs in which a chip sends and does not compute.

    Bars: (kind, start, end).
    """
    moments = sorted({moment for _, *ends in bars for moment in ends})
    total = 0
    for start, end in pairwise(moments):
        covering = {kind for kind, a, b in bars if a <= start and end <= b}
        if covering == {"communication"}:
            total += end - start
    return total
