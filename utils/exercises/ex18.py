"""Exercises and predictions of notebook 18, Kernels that send."""

from __future__ import annotations

import inspect
from typing import Any

import jax
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from utils.exercises import Choice, Prediction, Wrong, amount, exercise, explained, number, several, shown
from utils.exercises.prediction import ended

row_sum = Prediction(
    "",
    {
        1 / 4: "1 would be so if the kernel saw whole rows; here it sees 128 of 512 columns at a time, and each time "
        "what it sees adds up to 1",
        8 / 4: "8 blocks of rows have nothing to do with it; into how many blocks is a row cut?",
        32 / 4: "32 is the number of rows",
        128 / 4: "128 is the number of columns of a block",
        1 / 16: "the blocks are not averaged: each has a sum of its own",
    },
)
waits_longer = Choice(
    {
        "2": "its copy goes into device 3's memory, which takes it without any help of device 3's program",
        "3": "what device 2 sent has long arrived when it begins; it waits for its own copy alone, 4 ticks",
        "4": "its numbers come from device 3",
        "all": "a device waits for its left neighbour alone, and nothing is handed on",
    }
)
forgotten = Choice(
    {
        "right": "the interpreter writes into the target only when somebody waits for the arrival, and here nobody does",
        "zeros": "what nobody has written is nan in this interpreter, not 0",
        "nan": "",
        "an error": "no check looks for the waits that you did not write",
        "never ends": "nobody waits for something that does not come: a wait too few makes no hang",
    }
)
never_sent = Prediction(
    "devices",
    {
        8: "a device waits for its own copy and for its left neighbour's; it hands nothing on, so no wait causes another",
        0: "device 0 waits for bytes that device 7 never sends; what would end its wait?",
        2: "device 7 neither sends nor waits to have sent; what comes for it, device 6 sends",
        7: "devices 1 to 7 get what their left neighbours send, which hand nothing on",
    },
)
signal_to = Choice(
    {
        "left": "",
        "right": "then you know that your left neighbour has begun; whose memory do you write into?",
        "either": "a signal says that its sender has begun; you need to hear that of the one you send to",
    }
)
two_buffers = Choice(
    {
        "nobody": "device 3 falls behind by a tick in each round; what keeps device 2 from writing into a buffer that is still in use?",
        "3 alone": "what device 3 copies to its result, it copies in time here; but it sends from the same buffers",
        "3 and others": "it does with 8 ticks; with 2, device 3 has copied each piece out before the next but one arrives",
        "others alone": "",
    }
)
ring_ticks = Prediction(
    "ticks",
    {},
    own={
        "one after the other": {
            80 / 74: "8 sends and 8 products; the last piece need not travel on",
            32 / 74: "that is the products alone, or the sends behind them",
            70 / 74: "7 sends and 7 products; there are 8 products",
            42 / 74: "that is the sends alone",
            60 / 74: "that is with sends of 4 ticks",
        },
        "meanwhile": {
            74 / 46: "that is one after the other",
            48 / 46: "that is 8 rounds with a send; in the last one nothing is sent",
            50 / 46: "a send that begins with the product waits for none before it",
            42 / 46: "that is the 7 sends; the last product comes after the last of them",
            32
            / 46: "that is the products alone; a send takes longer than a product, and the next product needs what it brings",
            80 / 46: "that is 8 sends and 8 products, one after the other",
        },
    },
)
DMA = pltpu.SemaphoreType.DMA
COPY, LATE = 4, 40  # ticks: what a copy takes in `play`, and how late a device begins


def _played(
    answer: Any, parts: np.ndarray, shape: tuple[int, ...], scratch: list[Any], late: int | None, **options: Any
) -> Any:
    """Play the answer on eight devices, one of them late; a Wrong for who waits for ever. `options` of `play`."""
    from jax.sharding import PartitionSpec as P

    from utils.count.copies import play
    from utils.mesh import make_mesh

    def kernel(*refs: Any) -> None:
        try:
            returned = answer(*refs)
        except Wrong as wrong:
            if isinstance(wrong.__cause__, jax.errors.TracerBoolConversionError):
                raise Wrong(
                    "Your kernel asks `if`, `and` or `while` about a number of its device, and there is one text for all devices: it is "
                    "traced once. pl.when is a branch at run time."
                ) from wrong
            raise
        if returned is not None:
            raise Wrong("Your kernel returns something; it is to write into o_ref, and to return nothing.")

    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    call = pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct(shape, np.float32),
        in_specs=[anywhere],
        out_specs=anywhere,
        scratch_shapes=scratch,
        compiler_params=pltpu.CompilerParams(collective_id=0),
    )
    mesh = make_mesh((8,), ("i",))
    program = jax.shard_map(call, mesh=mesh, in_specs=P("i"), out_specs=P("i"), check_vma=False)
    when = "When all begin together" if late is None else f"When device {late} begins late"
    try:
        found = play(program, parts, late={} if late is None else {late: LATE}, **options)
    except (NotImplementedError, IndexError) as error:
        raise Wrong(f"Your kernel cannot be played: {error}.") from error
    if found.stuck:
        device, what = next(iter(found.stuck.items()))
        many = f", and so do {len(found.stuck) - 1} others" if len(found.stuck) > 1 else ""
        raise Wrong(f"{when}, device {device} waits for ever for {what}{many}. {_why_stuck(device, what, found)}")
    return when, found


def _why_stuck(device: int, what: str, found: Any) -> str:
    came = sum(copies for (_, target), copies in found.copies.items() if target == device)
    if what == "its own copy to be sent":
        return "How many does it start, and how often does it wait for one to be sent?"
    if what != "a copy to arrive":
        return "Who is to send it, and how often?"
    if not sum(found.copies.values()):
        return "No copy to another device is started."
    if came:
        sent = f"{came} copies were" if came > 1 else "One copy was"
        return f"{sent} sent to it: on which semaphore does it wait, and how often?"
    return "Who is to send it, and how often?"


def _refuse_leftovers(when: str, found: Any) -> None:
    if found.left:
        device, names = next(iter(found.left.items()))
        raise Wrong(
            f"Right values, but when its kernel ends device {device} has not waited, or not as often as it was told, for {names[0]}: a "
            "semaphore is not back at 0."
        )


def _refuse_early(when: str, found: Any) -> None:
    if found.early:
        source, target = min(found.early)
        raise Wrong(
            f"{when}, device {source} begins a copy to device {target} before that has begun its kernel. Wait at the barrier for a "
            f"signal of device {target} first; whom does device {target} have to signal?"
        )


def _judge_transposing_specs(answer):
    for shape, block in (((6, 8), (2, 4)), ((12, 10), (3, 2)), ((4, 15), (4, 5))):
        x = np.arange(np.prod(shape)).reshape(shape)
        said = f"For blocks of {block} of an array of {shape}"
        specs = several(answer(*block), 2, "two BlockSpecs, for x and for the result")
        if not all(isinstance(spec, pl.BlockSpec) for spec in specs):
            raise Wrong(f"You return {shown(specs)}; expected two pl.BlockSpec, for x and for the result.")
        for spec in specs:
            if callable(spec.block_shape):
                raise Wrong(
                    "A BlockSpec takes the shape of a block first, and then the function; yours are the other way round."
                )
            if not isinstance(spec.block_shape, (tuple, list)) or not callable(spec.index_map):
                raise Wrong(f"You return {shown(spec)}; expected pl.BlockSpec(shape of a block, function of i and j).")
        x_shape, o_shape = (tuple(_size(n) for n in spec.block_shape) for spec in specs)
        if x_shape != block:
            clue = "That is the spec for x: rows, columns."
            raise Wrong(f"{said} your first spec cuts blocks of {x_shape}. {_same_for(answer, 0) or clue}")
        if o_shape != block[::-1]:
            clue = "What shape has a block that is turned over?"
            raise Wrong(f"{said} your second spec cuts blocks of {o_shape}. {_same_for(answer, 1) or clue}")
        out = np.full(shape[::-1], -1)
        for i in range(shape[0] // block[0]):
            for j in range(shape[1] // block[1]):
                (a, b), (c, d) = (
                    _block(spec, i, j, said, which) for spec, which in zip(specs, ("first", "second"), strict=True)
                )
                if (a, b) != (i, j):
                    raise Wrong(
                        f"{said}, at place ({i}, {j}) of the grid, your first spec takes block ({a}, {b}) of x.{_clue((a, b), (i, j), block)}"
                    )
                if (c, d) != (j, i):
                    raise Wrong(
                        f"{said}, at place ({i}, {j}) of the grid, your second spec writes block ({c}, {d}) of the result."
                        f"{_clue((c, d), (j, i), block[::-1])}"
                    )
                rows, columns = block
                out[_part(c, columns), _part(d, rows)] = x[_part(a, rows), _part(b, columns)].T
        assert (out == x.T).all()


def _size(n: Any) -> int:
    """Of a block, along one axis. Pallas has `pl.Blocked(n)` for what a number means."""
    said = "One size of a block in your spec is"
    return number(
        n.block_size if isinstance(n, pl.Blocked) else n, "a number, of rows or columns", said=said, whole=True
    )


def _same_for(answer: Any, which: int) -> str:
    shapes = {str(list(answer(*block))[which].block_shape) for block in ((2, 4), (3, 2), (4, 5))}
    return "It does so whatever rows and columns are." if len(shapes) == 1 else ""


def _part(block: int, size: int) -> slice:
    return slice(block * size, (block + 1) * size)


def _block(spec: Any, i: int, j: int, said: str, which: str) -> tuple[int, int]:
    try:
        inspect.signature(spec.index_map).bind(i, j)
    except TypeError as error:
        raise Wrong(
            f"The index_map of your {which} spec cannot be called with two numbers ({error}); the grid has two axes, so Pallas calls it "
            "with i and j."
        ) from error
    got = several(
        spec.index_map(i, j), 2, "two numbers, of a block", said=f"{said}, at place ({i}, {j}), index_map gives"
    )
    return tuple(number(one, "the number of a block", whole=True) for one in got)


def _clue(got: tuple[int, int], want: tuple[int, int], block: tuple[int, int]) -> str:
    if got == (want[0] * block[0], want[1] * block[1]):
        return " These are numbers of rows and columns; Pallas counts blocks."
    if got == want[::-1]:
        return " The two have changed places."
    return f" Which block belongs there? Block {want[0]} down, and how many across?"


@exercise(
    _judge_transposing_specs,
    "A block of x at (i, j) becomes, turned over, the block at (j, i) of the result. An index map counts in blocks.",
)
def transposing_specs(rows, columns):
    """Blocks of (rows, columns) of x -> two BlockSpecs, for x and x.T; grid (i, j)."""
    of_x = pl.BlockSpec((rows, columns), lambda i, j: (i, j))
    of_result = pl.BlockSpec((columns, rows), lambda i, j: (j, i))
    return of_x, of_result


def _origins(found: Any, parts: np.ndarray) -> list[int | None]:
    """Whose part each device holds: -1 for nan, None for something else."""
    got = [np.asarray(result[0]) for result in found.results]
    return [
        -1 if np.isnan(mine).any() else next((k for k in range(8) if np.array_equal(mine, parts[k])), None)
        for mine in got
    ]


def _why_nan(device: int, found: Any) -> str:
    senders = [source for (source, target), copies in found.copies.items() if target == device and copies]
    if not senders:
        return f" No copy to device {device} is started."
    if "a copy to arrive" in found.left.get(device, []):
        return " Which wait says that something has arrived?"
    return f" Device {senders[0]} has sent to it: from which ref, and into which?"


def _judge_swap_pairs(answer):
    parts = np.arange(24, dtype=np.float32).reshape(8, 3) ** 2
    for late in (None, 2, 5):
        when, found = _played(answer, parts.ravel(), (3,), [DMA, DMA], late)
        origins = _origins(found, parts)
        wrong = [k for k in range(8) if origins[k] != k ^ 1]
        if wrong:
            device, got = wrong[0], origins[wrong[0]]
            held = {
                -1: "nan: nothing has been written into its o_ref when its kernel ends",
                None: "no device's part",
            }.get(got, f"the part of device {got}")
            clue = ""
            if all(origins[k] == (k - 1) % 8 for k in range(8)):
                clue = " You send all to the right: to whom does device 1 send?"
            elif all(origins[k] == (k + 1) % 8 for k in range(8)):
                clue = " You send all to the left: to whom does device 0 send?"
            elif got == device:
                clue = " That is its own part: what is sent to it, and into which ref?"
            elif got == -1:
                clue = _why_nan(device, found)
            raise Wrong(f"{when}, device {device} ends with {held}; its partner is device {device ^ 1}.{clue}")
        _refuse_early(when, found)
        _refuse_leftovers(when, found)


@exercise(
    _judge_swap_pairs,
    "Your partner is me + 1 where me is even, me - 1 where it is odd: me ^ 1. Signal it at the barrier, wait for its signal, then "
    "copy, and wait for both ends.",
)
def swap_pairs(x_ref, o_ref, sent, arrived):
    """Per device: its partner's part into o_ref; 0 and 1 are partners, 2 and 3, ..."""
    partner = jax.lax.axis_index("i") ^ 1
    barrier = pltpu.get_barrier_semaphore()
    pl.semaphore_signal(barrier, 1, device_id=(partner,))
    pl.semaphore_wait(barrier, 1)
    copy = pltpu.make_async_remote_copy(x_ref, o_ref, sent, arrived, device_id=(partner,))
    copy.start()
    copy.wait()


def _judge_gather_both_ways(answer):
    parts = np.arange(1, 17, dtype=np.float32).reshape(8, 2) ** 2
    scratch = [DMA, DMA((2,)), DMA((2, 4))]
    passed_on = " Which wait says that *this* piece has arrived, before it is sent on?"
    for late, slow in ((None, 1), (3, 1), (6, 1), (None, 3 * COPY)):
        when, found = _played(answer, parts.ravel(), (8, 2), scratch, late, local_copy=slow)
        when += f", and a copy inside a device takes {slow} ticks" if slow > 1 else ""
        _refuse_misplaced(when, found, parts, "" if late is None else passed_on)
        _refuse_early(when, found)
        _refuse_leftovers(when, found)
        if (late, slow) == (None, 1):
            _refuse_detours(found)
    for nth, word in enumerate(("first", "second", "third")):  # device 2's, to both sides, overtaken by all later ones
        behind = {(2, target, nth): LATE for target in range(8)}
        _, found = _played(answer, parts.ravel(), (8, 2), scratch, None, behind=behind)
        when = (
            f"When the {word} copies of device 2 arrive {LATE} ticks after they are sent, and later ones overtake them"
        )
        _refuse_misplaced(when, found, parts, passed_on)


def _refuse_misplaced(when: str, found: Any, parts: np.ndarray, clue: str = "") -> None:
    rows = np.stack([np.asarray(result[0]) for result in found.results])
    wrong = (rows != parts).any(-1)
    unwritten = np.isnan(rows).any(-1)
    for device, place in [*np.argwhere(wrong & ~unwritten).tolist(), *np.argwhere(wrong).tolist()]:
        whose = next((k for k in range(8) if np.array_equal(rows[device, place], parts[k])), None)
        held = "no part" if whose is None else f"part {whose}"
        held = "nan, which nobody has written" if unwritten[device, place] else held
        raise Wrong(
            f"{when}, on device {device}, at place {place}, stands {held} when its kernel ends; part {place} belongs there."
            f"{clue or _why_misplaced(device, place, found, ~wrong)}"
        )


def _why_misplaced(device: int, place: int, found: Any, right: np.ndarray) -> str:
    for side, way in ((1, "right"), (-1, "left")):
        if any(found.copies.values()) and not any(found.copies[k, (k + side) % 8] for k in range(8)):
            return f" Nobody sends to the {way}."
    if place == device:
        return " That is its own: who puts it there, and does anybody write over it?"
    if "a copy to arrive" in found.left.get(device, []):
        return " Which wait says that something has arrived?"
    has = sorted((np.flatnonzero(right[device]) - device) % 8)
    if has == [0]:
        return " It has its own part alone: what stands in the places from which its neighbours send, when they do?"
    if has == [0, 1, 7]:
        return " It has its own part and those of its neighbours alone: which piece do these send to it in the second round?"
    return ""


def _refuse_detours(found: Any) -> None:
    for (source, target), copies in sorted(found.copies.items()):
        if (target - source) % 8 not in (1, 7):
            raise Wrong(
                f"Device {source} sends to device {target}; its neighbours are {(source - 1) % 8} and {(source + 1) % 8}."
            )
        if copies > 4:
            way = "right" if (target - source) % 8 == 1 else "left"
            raise Wrong(f"Device {source} sends {copies} pieces to the {way}; at most 4 are to go in one direction.")
    total = sum(copies for (source, _), copies in found.copies.items() if source == 0)
    if total > 7:
        raise Wrong(f"Device 0 sends {total} pieces; 7 are enough. Which piece arrives from both sides?")
    if found.end > 5 * COPY:
        raise Wrong(
            f"Right values, in {found.end} ticks; at most {5 * COPY} are asked, and a copy takes {COPY}. Are the two copies of a round on "
            "their way at the same time?"
        )


@exercise(
    _judge_gather_both_ways,
    "After `step` rounds the newest piece from the left began at device me - step, the newest from the right at me + step. Start "
    "both copies of a round, then wait for both. The fourth round goes one way.",
)
def gather_both_ways(x_ref, o_ref, local, sent, arrived):
    """Per device: its part (k,) -> all eight in o_ref (8, k), by copies both ways."""
    me = jax.lax.axis_index("i")
    sides = ((me + 1) % 8, (me - 1) % 8)
    barrier = pltpu.get_barrier_semaphore()
    for side in sides:
        pl.semaphore_signal(barrier, 1, device_id=(side,))
    pl.semaphore_wait(barrier, 2)
    own = pltpu.make_async_copy(x_ref, o_ref.at[me], local)
    own.start()
    own.wait()
    for step in range(4):
        copies = []
        for way in (0, 1) if step < 3 else (0,):
            piece = o_ref.at[(me + step) % 8 if way else (me - step) % 8]
            semaphores = sent.at[way], arrived.at[way, step]
            copies.append(pltpu.make_async_remote_copy(piece, piece, *semaphores, device_id=(sides[way],)))
            copies[-1].start()
        for copy in copies:
            copy.wait()


CASES = ((7, 5, 3, False), (7, 5, 3, True), (5, 2, 7, True), (12, 3, 8, False))
TICK_SLIPS = [  # of n, copy c, product p, meanwhile m
    (
        lambda n, c, p, m: n * (max(c, p) if m else c + p),
        "that is n rounds with a copy each; where would the last one go?",
    ),
    (lambda n, c, p, m: (n - 1) * (max(c, p) if m else c + p), "that is n - 1 rounds; how many products are there?"),
    (lambda n, c, p, m: (n - 1) * (c + p) + p, "that is one after the other, although the piece may travel meanwhile"),
    (lambda n, c, p, m: (n - 1) * max(c, p) + p, "that is meanwhile, also where each copy is waited for first"),
    (lambda n, c, p, m: n * p, "that is the products alone: does a copy always end before its product?"),
    (
        lambda n, c, p, m: n * p if m else (n - 1) * (c + p) + p,
        "meanwhile that is the products alone: does a copy always end before its product?",
    ),
    (
        lambda n, c, p, m: (n - 1) * (min(c, p) if m else c + p) + p,
        "a round is over when both are: the shorter or the longer?",
    ),
    (
        lambda n, c, p, m: (n - 1) * (c if m else c + p) + p,
        "meanwhile that is the copies and the last product: does a product always end before its copy?",
    ),
    (lambda n, c, p, m: (n - 1) * (max(c, p) if m else c + p) + c, "what comes last is a product, not a copy"),
    (
        lambda n, c, p, m: (n - 1) * (c + p if m else max(c, p)) + p,
        "the two have changed places: meanwhile is True where the piece travels while it multiplies",
    ),
    (
        lambda n, c, p, m: (n - 1) * max(c, p) if m else (n - 1) * (c + p) + p,
        "meanwhile that is one product too few: which round has no copy?",
    ),
    (
        lambda n, c, p, m: (n - 1) * max(c, p) + p if m else (n - 1) * (c + p),
        "one after the other that is one product too few: which round has no copy?",
    ),
    (
        lambda n, c, p, m: (n - 1) * max(c, p) + c if m else (n - 1) * (c + p) + p,
        "meanwhile, too, what comes last is a product, not a copy",
    ),
    (
        lambda n, c, p, m: max((n - 1) * c, n * p) if m else (n - 1) * (c + p) + p,
        "meanwhile that is all copies or all products, the longer of the two: can the last product begin before the last copy has ended?",
    ),
]


def _judge_product_ticks(answer):
    said, wanted = [], []
    for n, copy, product, meanwhile in CASES:
        call = f"product_ticks({n}, {copy}, {product}, {meanwhile}) gives"
        said.append(number(answer(n, copy, product, meanwhile), "one number, of ticks", said=call))
        wanted.append((n - 1) * (max(copy, product) if meanwhile else copy + product) + product)
    words = explained(said, [([slip(*case) for case in CASES], why) for slip, why in TICK_SLIPS])
    for (n, copy, product, meanwhile), got, want in zip(CASES, said, wanted, strict=True):
        if got != want:
            asked = "what does a round with a copy take, how many are there, and what is left for the last one?"
            call = f"product_ticks({n}, {copy}, {product}, {meanwhile})"
            raise Wrong(ended(f"{call} gives {amount(got)}, expected {amount(want)}: {words or asked}"))


@exercise(
    _judge_product_ticks,
    "n products and n - 1 copies. In a round with both, the next begins when the later of the two has ended.",
)
def product_ticks(n, copy, product, meanwhile):
    """Ticks of a ring product on n devices, given those of one copy and product."""
    a_round = max(copy, product) if meanwhile else copy + product
    return (n - 1) * a_round + product
