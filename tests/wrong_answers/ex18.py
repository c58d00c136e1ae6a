"""Wrong answers to the exercises of notebook 18, and right ones in unusual forms."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from utils.exercises import ex18


def _specs(of_x, of_result, turned=True):
    """An answer with these index maps; they may ask for the sizes of a block."""

    def answer(rows, columns):
        second = (columns, rows) if turned else (rows, columns)
        return (
            pl.BlockSpec((rows, columns), lambda i, j: of_x(i, j, rows, columns)),
            pl.BlockSpec(second, lambda i, j: of_result(i, j, rows, columns)),
        )

    return answer


def specs_turned(rows, columns):
    """The solution, for blocks of this shape."""
    return pl.BlockSpec((rows, columns), lambda i, j: (i, j)), pl.BlockSpec((columns, rows), lambda i, j: (j, i))


def specs_one_axis(rows, columns):
    """Index maps for a grid of one axis."""
    return pl.BlockSpec((rows, columns), lambda i: (i, 0)), pl.BlockSpec((columns, rows), lambda i: (0, i))


def specs_turned_call(rows, columns):
    """The function first, as Pallas once had it."""
    return pl.BlockSpec(lambda i, j: (i, j), (rows, columns)), pl.BlockSpec(lambda i, j: (j, i), (columns, rows))


def swap(
    partner=lambda me: me ^ 1,
    tell=lambda me: me ^ 1,
    signal=1,
    wait=1,
    waits="sr",
):
    def kernel(x_ref, o_ref, sent, arrived):
        me = jax.lax.axis_index("i")
        barrier = pltpu.get_barrier_semaphore()
        if signal:
            pl.semaphore_signal(barrier, signal, device_id=None if tell is None else (tell(me),))
        if wait:
            pl.semaphore_wait(barrier, wait)
        copy = pltpu.make_async_remote_copy(x_ref, o_ref, sent, arrived, device_id=(partner(me),))
        copy.start()
        for one in waits:
            copy.wait_send() if one == "s" else copy.wait_recv()

    return kernel


def swap_if(x_ref, o_ref, sent, arrived):
    """A branch of Python's on the number of the device."""
    me = jax.lax.axis_index("i")
    swap(partner=lambda me: me + 1 if me % 2 == 0 else me - 1)(x_ref, o_ref, sent, arrived)
    return me


def swap_no_start(x_ref, o_ref, sent, arrived):
    """A copy that is made and awaited, and never started."""
    partner = jax.lax.axis_index("i") ^ 1
    pltpu.make_async_remote_copy(x_ref, o_ref, sent, arrived, device_id=(partner,)).wait()


def swap_wait(x_ref, o_ref, sent, arrived):
    """All eight meet at the barrier, and the copy is one call."""
    me = jax.lax.axis_index("i")
    barrier = pltpu.get_barrier_semaphore()
    for step in range(1, 8):
        pl.semaphore_signal(barrier, device_id=((me + step) % 8,))
    pl.semaphore_wait(barrier, 7)
    pltpu.async_remote_copy(x_ref, o_ref, sent, arrived, device_id=(me + 1 - 2 * (me % 2),)).wait()


def swap_when(x_ref, o_ref, sent, arrived):
    """Even and odd devices by two branches."""
    me = jax.lax.axis_index("i")

    def to(partner):
        barrier = pltpu.get_barrier_semaphore()
        pl.semaphore_signal(barrier, 3, device_id=(partner,))
        pl.semaphore_wait(barrier, 3)
        copy = pltpu.make_async_remote_copy(x_ref, o_ref, sent, arrived, device_id=(partner,))
        copy.start()
        copy.wait_recv()
        copy.wait_send()

    pl.when(me % 2 == 0)(functools.partial(to, me + 1))
    pl.when(me % 2 == 1)(functools.partial(to, me - 1))


def swap_scoped(x_ref, o_ref, sent, arrived):
    """Through a buffer of its own, with semaphores of its own besides."""
    me = jax.lax.axis_index("i")
    partner = jnp.where(me % 2, me - 1, me + 1)

    def inside(buffer, extra):
        pltpu.async_copy(x_ref, buffer, extra).wait()
        barrier = pltpu.get_barrier_semaphore()
        pl.semaphore_signal(barrier, 1, device_id=(partner,))
        pl.semaphore_wait(barrier, 1)
        pltpu.async_remote_copy(buffer, o_ref, sent, arrived, device_id=(partner,)).wait()

    pl.run_scoped(inside, pltpu.VMEM((3,), jnp.float32), pltpu.SemaphoreType.DMA)


def swap_own(x_ref, o_ref, sent, arrived):
    """Its own part, copied inside the device."""
    pltpu.async_copy(x_ref, o_ref, sent).wait()


def swap_into_x(x_ref, o_ref, sent, arrived):
    """The copy lands in the partner's x_ref."""
    swap()(x_ref, x_ref, sent, arrived)


def swap_even(x_ref, o_ref, sent, arrived):
    """The even devices send, the odd ones wait."""
    me = jax.lax.axis_index("i")
    barrier = pltpu.get_barrier_semaphore()
    pl.semaphore_signal(barrier, 1, device_id=(me ^ 1,))
    pl.semaphore_wait(barrier, 1)
    copy = pltpu.make_async_remote_copy(x_ref, o_ref, sent, arrived, device_id=(me ^ 1,))
    pl.when(me % 2 == 0)(copy.start)
    pl.when(me % 2 == 0)(copy.wait_send)
    pl.when(me % 2 == 1)(copy.wait_recv)


def both(
    barrier=2,
    own=True,
    own_wait=True,
    rounds=(2, 2, 2, 1),
    together=True,
    turn=1,
    stale=False,
    waits="sr",
    signals=1,
    landing=0,
    counter=lambda way, step: (way, step),
    last="",
    to=lambda way: way,
):
    def kernel(x_ref, o_ref, local, sent, arrived):
        me = jax.lax.axis_index("i")
        sides = ((me + 1) % 8, (me - 1) % 8)
        if barrier:
            for side in sides:
                pl.semaphore_signal(pltpu.get_barrier_semaphore(), signals, device_id=(side,))
            pl.semaphore_wait(pltpu.get_barrier_semaphore(), barrier)
        copy = pltpu.make_async_copy(x_ref, o_ref.at[me], local)
        if own:
            copy.start()
        if own and own_wait:
            copy.wait()
        later = []
        for step, ways in enumerate(rounds):
            copies = []
            for way in range(ways):
                at = 0 if stale else step if way else -step
                piece = o_ref.at[(me + turn * at) % 8]
                target = o_ref.at[(me + turn * at + (-landing if way else landing)) % 8]
                copy = pltpu.make_async_remote_copy(
                    piece, target, sent.at[way], arrived.at[counter(way, step % 4)], device_id=(sides[to(way)],)
                )
                copy.start()
                copies.append(copy)
                if not together:
                    copy.wait()
            for copy in copies if together else []:
                if "s" in waits:
                    copy.wait_send()
                if "r" in waits:
                    copy.wait_recv()
                if "r" in last:
                    later.append(copy)
        for copy in later:
            copy.wait_recv()

    return kernel


def both_own_last(x_ref, o_ref, local, sent, arrived):
    """Its own part comes into its place when all others have been sent."""
    both(own=False)(x_ref, o_ref, local, sent, arrived)
    pltpu.async_copy(x_ref, o_ref.at[jax.lax.axis_index("i")], local).wait()


def both_no_start(x_ref, o_ref, local, sent, arrived):
    """A copy that is made and awaited, and never started."""
    me = jax.lax.axis_index("i")
    pltpu.async_copy(x_ref, o_ref.at[me], local).wait()
    pltpu.make_async_remote_copy(
        o_ref.at[me], o_ref.at[me], sent.at[0], arrived.at[0, 0], device_id=((me + 1) % 8,)
    ).wait()


def both_loop(x_ref, o_ref, local, sent, arrived):
    """Three rounds in a fori_loop; the last copy to the left side."""
    me = jax.lax.axis_index("i")
    right, left = (me + 1) % 8, (me - 1) % 8
    barrier = pltpu.get_barrier_semaphore()
    pl.semaphore_signal(barrier, 1, device_id=(left,))
    pl.semaphore_signal(barrier, 1, device_id=(right,))
    pl.semaphore_wait(barrier, 2)
    pltpu.async_copy(x_ref, o_ref.at[me], local).wait()

    def send(way, step):
        at = o_ref.at[(me + step) % 8] if way else o_ref.at[(me + 8 - step) % 8]
        to = left if way else right
        return pltpu.async_remote_copy(at, at, sent.at[way], arrived.at[way, step], device_id=(to,))

    def a_round(step, carry):
        first, second = send(0, step), send(1, step)
        second.wait()
        first.wait()
        return carry

    jax.lax.fori_loop(0, 3, a_round, 0)
    send(1, 3).wait()


def both_own_later(x_ref, o_ref, local, sent, arrived):
    """The first copies go out of x_ref, and its own place is filled meanwhile."""
    me = jax.lax.axis_index("i")
    sides = ((me + 1) % 8, (me - 1) % 8)
    barrier = pltpu.get_barrier_semaphore()
    for side in sides:
        pl.semaphore_signal(barrier, device_id=(side,))
    pl.semaphore_wait(barrier, 2)
    own = pltpu.async_copy(x_ref, o_ref.at[me], local)
    for step in range(4):
        copies = []
        for way in range(2 if step < 3 else 1):
            place = (me + step) % 8 if way else (me - step) % 8
            source = o_ref.at[place] if step else x_ref
            copies.append(
                pltpu.async_remote_copy(
                    source, o_ref.at[place], sent.at[way], arrived.at[way, step], device_id=(sides[way],)
                )
            )
        for copy in copies:
            copy.wait()
    own.wait()


def both_lazy(x_ref, o_ref, local, sent, arrived):
    """Waits in each round for what arrives, and at the end for all that was sent."""
    me = jax.lax.axis_index("i")
    sides = ((me + 1) % 8, (me - 1) % 8)
    barrier = pltpu.get_barrier_semaphore()
    for side in sides:
        pl.semaphore_signal(barrier, 2, device_id=(side,))
    pl.semaphore_wait(barrier, 4)
    pltpu.async_copy(x_ref, o_ref.at[me], local).wait()
    started = []
    for step in range(4):
        ways = (0, 1) if step < 3 else (1,)
        for way in ways:
            piece = o_ref.at[(me + step) % 8] if way else o_ref.at[(me - step) % 8]
            copy = pltpu.make_async_remote_copy(
                piece, piece, sent.at[way], arrived.at[way, step], device_id=(sides[way],)
            )
            copy.start()
            started.append(copy)
        for copy in started[-len(ways) :]:
            copy.wait_recv()
    for copy in started:
        copy.wait_send()


def ticks(rounds=lambda n: n - 1, last=True, each=None):
    each = each or (lambda copy, product, meanwhile: max(copy, product) if meanwhile else copy + product)
    return lambda n, copy, product, meanwhile: rounds(n) * each(copy, product, meanwhile) + last * product


def ticks_meanwhile(say):
    """Right where they take turns."""
    return lambda n, copy, product, meanwhile: (
        say(n, copy, product) if meanwhile else (n - 1) * (copy + product) + product
    )


# exercise: [(wrong answer, what the message must say)]
WRONG = {
    ex18.transposing_specs: [
        (_specs(lambda i, j, r, c: (i, j), lambda i, j, r, c: (i, j)), "The two have changed places"),
        (_specs(lambda i, j, r, c: (j, i), lambda i, j, r, c: (j, i)), "your first spec takes block"),
        (_specs(lambda i, j, r, c: (i, j), lambda i, j, r, c: (j, i), False), "What shape has a block that is turned"),
        (_specs(lambda i, j, r, c: (i * r, j * c), lambda i, j, r, c: (j, i)), "Pallas counts blocks"),
        (_specs(lambda i, j, r, c: (i, j), lambda i, j, r, c: (j * c, i * r)), "Pallas counts blocks"),
        (_specs(lambda i, j, r, c: (i, 0), lambda i, j, r, c: (0, i)), "Which block belongs there?"),
        (lambda rows, columns: pl.BlockSpec((rows, columns), lambda i, j: (i, j)), "expected two BlockSpecs"),
        (lambda rows, columns: ((rows, columns), (columns, rows)), "expected two pl.BlockSpec"),
        (lambda rows, columns: specs_turned(8, 128), "whatever rows and columns are"),
        (lambda rows, columns: specs_turned(pl.Element(rows), columns), "One size of a block in your spec is"),
        (specs_one_axis, "your first spec cannot be called with two numbers"),
        (specs_turned_call, "the shape of a block first, and then the function"),
    ],
    ex18.swap_pairs: [
        (swap(signal=0, wait=0), "before that has begun its kernel"),
        (swap(partner=lambda me: (me + 1) % 8), "You send all to the right"),
        (swap(partner=lambda me: (me - 1) % 8), "You send all to the left"),
        (swap(waits="s"), "Which wait says that something has arrived?"),
        (swap(waits="r"), "for its own copy to be sent"),
        (swap(waits=""), "Which wait says that something has arrived?"),
        (swap(signal=0), "waits for ever for a signal"),
        (swap(wait=2), "waits for ever for a signal"),
        (swap(signal=2), "not as often as it was told, for a signal"),
        (swap(wait=0), "not waited, or not as often as it was told, for a signal"),
        (swap(tell=None), "before that has begun its kernel"),
        (swap(partner=lambda me: (me + 4) % 8), "its partner is device 1"),
        (swap(partner=lambda me: me), "the part of device 0; its partner is device 1"),
        (swap(partner=lambda me: me + 1), "there is no device 8"),
        (swap_even, "No copy to device 0 is started"),
        (swap_into_x, "from which ref, and into which?"),
        (swap_own, "That is its own part"),
        (swap(waits="srr"), "One copy was sent to it: on which semaphore does it wait, and how often?"),
        (swap(waits="rr"), "One copy was sent to it: on which semaphore does it wait, and how often?"),
        (swap(waits="ssr"), "how often does it wait for one to be sent?"),
        (swap_no_start, "No copy to another device is started"),
        (swap_if, "pl.when is a branch at run time"),
    ],
    ex18.gather_both_ways: [
        (both(rounds=(1,) * 7), "at most 4 are to go in one direction"),
        (both(rounds=(2, 2, 2, 2)), "7 are enough"),
        (both(own=False), "That is its own: who puts it there, and does anybody"),
        (both(landing=1), "and does anybody write over it?"),
        (both(own_wait=False), "for its own copy: a semaphore"),
        (both(stale=True), "stands nan"),
        (both(turn=-1), "stands nan"),
        (both(together=False), "at the same time?"),
        (both(barrier=0), "before that has begun its kernel"),
        (both(barrier=1), "not as often as it was told, for a signal"),
        (both(barrier=2, signals=2), "not as often as it was told, for a signal"),
        (both(barrier=3), "waits for ever for a signal"),
        (both(waits="r"), "for its own copy to be sent"),
        (both(waits="s"), "stands nan"),
        (both(rounds=(2, 2, 2)), "at place 4, stands nan"),
        (both(counter=lambda way, step: (way, 0)), "first copies of device 2 arrive 40 ticks after they are sent"),
        (both(counter=lambda way, step: (way, 0)), "Which wait says that *this* piece has arrived"),
        (both(counter=lambda way, step: (way, step // 2)), "Which wait says that *this* piece has arrived"),
        (both(counter=lambda way, step: (way, min(step, 1))), "second copies of device 2"),
        (both(counter=lambda way, step: (0, 0)), "Which wait says that *this* piece has arrived"),
        (both(waits="s"), "Which wait says that something has arrived?"),
        (both(turn=-1), "It has its own part alone"),
        (both(stale=True), "those of its neighbours alone"),
        (both(waits="s", last="r"), "Which wait says that *this* piece has arrived"),
        (both(to=lambda way: 0), "Nobody sends to the left"),
        (both_own_last, "from which its neighbours send, when"),
        (both_no_start, "No copy to another device is started"),
    ],
    ex18.product_ticks: [
        (ticks(rounds=lambda n: n, last=False), "where would the last one go?"),
        (ticks(last=False), "how many products are there?"),
        (ticks(each=lambda c, p, m: c + p), "although the piece may travel meanwhile"),
        (ticks(each=lambda c, p, m: max(c, p)), "also where each copy is waited for first"),
        (lambda n, copy, product, meanwhile: n * product, "that is the products alone: does a copy"),
        (ticks(each=lambda c, p, m: min(c, p) if m else c + p), "the shorter or the longer?"),
        (ticks(each=lambda c, p, m: c if m else c + p), "the copies and the last product: does a product"),
        (ticks(each=lambda c, p, m: c + p if m else max(c, p)), "the two have changed places"),
        (
            ticks_meanwhile(lambda n, copy, product: (n - 1) * max(copy, product)),
            "meanwhile that is one product too few",
        ),
        (
            lambda n, copy, product, meanwhile: (
                (n - 1) * max(copy, product) + product if meanwhile else (n - 1) * (copy + product)
            ),
            "one after the other that is one product too few",
        ),
        (
            ticks_meanwhile(lambda n, copy, product: (n - 1) * max(copy, product) + copy),
            "what comes last is a product, not a copy",
        ),
        (
            ticks_meanwhile(lambda n, copy, product: max((n - 1) * copy, n * product)),
            "can the last product begin before the last copy has ended?",
        ),
        (lambda n, copy, product, meanwhile: None, "Does the function end with `return`"),
    ],
}

# exercise: [right answers in unusual forms]
RIGHT = {
    ex18.transposing_specs: [
        lambda rows, columns: [
            pl.BlockSpec((rows, columns), lambda i, j: (i, j)),
            pl.BlockSpec((columns, rows), lambda *at: at[::-1]),
        ],
        lambda rows, columns: (
            pl.BlockSpec(block_shape=(rows, columns), index_map=lambda a, b: [a, b]),
            pl.BlockSpec(block_shape=(columns, rows), index_map=lambda a, b: [b, a]),
        ),
        lambda rows, columns: (
            pl.BlockSpec((np.int64(rows), columns), lambda i, j: (jnp.int32(i), j), memory_space=pltpu.VMEM),
            pl.BlockSpec((columns, np.int64(rows)), lambda i, j: (j, jnp.int32(i)), memory_space=pltpu.VMEM),
        ),
        lambda rows, columns: specs_turned(pl.Blocked(rows), columns),
        lambda rows, columns: {
            "x": pl.BlockSpec((rows, columns), lambda i, j: (i, j)),
            "o": pl.BlockSpec((columns, rows), lambda i, j: (j, i)),
        }.values(),
    ],
    ex18.swap_pairs: [swap_wait, swap_when, swap_scoped, swap(signal=2, wait=2)],
    ex18.gather_both_ways: [
        both_loop,
        both_own_later,
        both_lazy,
        both(waits="rs"),
        both(counter=lambda way, step: (way, step % 2)),  # a round begins when the last but one has been waited for
        both(counter=lambda way, step: (0, step)),  # the two of a round are waited for before either is used
    ],
    ex18.product_ticks: [
        lambda n, copy, product, meanwhile: np.float64(
            (n - 1) * np.where(meanwhile, np.maximum(copy, product), copy + product) + product
        ),
        lambda n, copy, product, meanwhile: n * product + (n - 1) * (max(0, copy - product) if meanwhile else copy),
        lambda n, copy, product, meanwhile: jnp.array(
            sum([max(copy, product) if meanwhile else copy + product] * (n - 1), product)
        ),
        lambda n, copy, product, meanwhile: (
            product if n == 1 else product + (n - 1) * (copy + product - meanwhile * min(copy, product))
        ),
    ],
}

# exercise: [(change of the solution that computes the same, why)]
SAME = {
    ex18.swap_pairs: [
        (
            "partner = jax.lax.axis_index('i') ^ 1 -> partner = 1 ^ jax.lax.axis_index('i')",
            "the order of the two does not matter to ^",
        )
    ],
    ex18.product_ticks: [
        (
            "a_round = max(copy, product) if meanwhile else copy + product -> "
            "a_round = max(product, copy) if meanwhile else copy + product",
            "the larger of two, in either order",
        )
    ],
}

LATE_RING = {"one after the other": 74, "meanwhile": 46}  # 7 (6 + 4) + 4; 7 max(6, 4) + 4

# prediction: (truth, [(wrong guess, words of its answer)])
GUESSES = {
    ex18.row_sum: (
        4,
        [(1, "each time what it sees adds up to 1"), (32, "number of rows"), (8, "into how many blocks")],
    ),
    ex18.waits_longer: (
        "4",
        [
            ("2", "without any help"),
            ("3", "has long arrived"),
            ("all", "its left neighbour alone"),
            (5, "expected '2'"),
        ],
    ),
    ex18.forgotten: (
        "nan",
        [
            ("right", "only when somebody waits for the arrival"),
            ("zeros", "is nan in this interpreter"),
            ("an error", "did not write"),
        ],
    ),
    ex18.never_sent: (
        1,
        [
            (8, "hands nothing on"),
            (0, "what would end its wait"),
            (2, "neither sends nor waits"),
            (7, "left neighbours"),
        ],
    ),
    ex18.signal_to: ("left", [("right", "whose memory"), ("either", "need to hear")]),
    ex18.two_buffers: (
        "others alone",
        [("nobody", "falls behind by a tick"), ("3 alone", "the same buffers"), ("3 and others", "with 8 ticks")],
    ),
    ex18.ring_ticks: (
        LATE_RING,
        [
            ((80, None), "the last piece need not travel on"),
            ((32, None), "the products alone"),
            ((None, 48), "in the last one nothing is sent"),
            ((None, 42), "the 7 sends"),
            ((None, 74), "one after the other"),
        ],
    ),
}
