"""Wrong and right answers to the exercises of notebook 15, and wrong guesses."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from utils.exercises import ex15


def cache(pair=2, deep=True, heads=None, rows=None, each=None):
    """cache_bytes with one of its factors written in another way."""

    def answer(layers, key_heads, size, rows_, length, data, model, each_=2):
        kept = (heads or (lambda k, m: max(k // m, 1)))(key_heads, model)
        mine = (rows or (lambda r, d: r // d))(rows_, data)
        return pair * (layers if deep else 1) * kept * size * mine * length * (each or each_)

    def named(layers, key_heads, size, rows, length, data, model, each=2):
        return answer(layers, key_heads, size, rows, length, data, model, each)

    return named


def by_shape(layers, key_heads, size, rows, length, data, model, each=2):
    shape = jax.ShapeDtypeStruct((2, layers, rows // data, length, -(-key_heads // model), size), jnp.int8)
    return np.int64(math.prod(shape.shape)) * each


def by_lists(layers, key_heads, size, rows, length, data, model, each=2):
    kept = max(1.0, key_heads / model)
    return sum(2.0 * each * length * size * kept for _ in range(layers) for _ in range(rows // data))


def fraction(layers, key_heads, size, rows, length, data, model, each=2):
    return float(Fraction(2 * layers * size * rows * length * each, data) * max(Fraction(key_heads, model), 1))


def as_array(layers, key_heads, size, rows, length, data, model, each=2):
    return np.prod(np.array([2, layers, size, rows / data, length, each, np.maximum(key_heads / model, 1)]))


def axes_swapped(layers, key_heads, size, rows, length, data, model, each=2):
    return 2 * layers * max(key_heads / data, 1) * size * rows / model * length * each


def fold(*axes):
    def own_key(key):
        for axis in axes:
            key = jax.random.fold_in(key, lax.axis_index(axis))
        return key

    return own_key


def added(key):
    return jax.random.fold_in(key, lax.axis_index("pipe") + lax.axis_index("model"))


def numbered(key):
    return jax.random.key(lax.axis_index(("pipe", "model")))


def twice_pipe(key):
    return jax.random.fold_in(key, 2 * lax.axis_index("pipe") + lax.axis_index("model"))


def bits(key):
    return jax.random.bits(fold("pipe", "model")(key))


def split_eight(key):
    return jax.random.split(key, 8)


def in_line(key):
    return jax.random.fold_in(key, lax.axis_index("pipe") * lax.psum(1, "model") + lax.axis_index("model"))


def by_device_count(key):
    return jax.random.fold_in(key, lax.axis_index("pipe") * jax.device_count() + lax.axis_index("model"))


def both_at_once(key):
    return jax.random.fold_in(key, lax.axis_index(("pipe", "model")))


def from_a_list(key):
    keys = jax.random.split(key, (lax.psum(1, "pipe"), lax.psum(1, "model")))
    return keys[lax.axis_index("pipe"), lax.axis_index("model")]


def from_a_short_list(key):
    return jax.random.split(key, 64)[8 * lax.axis_index("pipe") + lax.axis_index("model")]


def times_a_number(*, pipe=1, model=1):
    return lambda key: jax.random.fold_in(key, pipe * lax.axis_index("pipe") + model * lax.axis_index("model"))


def multiplied(key):
    return jax.random.fold_in(key, lax.axis_index("pipe") * lax.axis_index("model"))


def sizes(key):
    return jax.random.fold_in(jax.random.fold_in(key, lax.psum(1, "pipe")), lax.psum(1, "model"))


def far_apart(key):
    return jax.random.fold_in(key, 1000 * lax.axis_index("model") + lax.axis_index("pipe") + 17)


def pick(
    rule=None,
    order=lambda d, p, m: (d, m),
    need=16,
    share=lambda p, m: p * m,
    rows_each=4,
    sizes=range(1, 65),
    extra=lambda d, p, m, *case: True,
):
    """pick_mesh without one rule, or with one more, or with another order or memory."""

    def answer(chips, node, memory, layers, heads, parameters, rows):
        found = []
        for p in sizes:
            for m in sizes:
                if chips % (p * m):
                    continue
                d = chips // (p * m)
                fits = {
                    "heads": heads % m == 0,
                    "node": node % m == 0,
                    "layers": layers % p == 0,
                    "rows": rows % d == 0,
                    "bubble": p == 1 or rows / d >= rows_each * p,
                    "memory": need * parameters <= memory * share(p, m),
                }
                more = extra(d, p, m, chips, node, memory, layers, heads, parameters, rows)
                if more and all(fits[name] for name in fits if name != rule):
                    found.append((d, p, m))
        return max(found, key=lambda mesh: order(*mesh), default=None)

    return answer


def bubble_always(*case):
    mesh = pick()(*case)
    if mesh is None or case[-1] >= 4 * mesh[1] * mesh[0]:
        return mesh
    found = [
        (d, p, m)
        for d, p, m in itertools.product(range(1, case[0] + 1), repeat=3)
        if d * p * m == case[0] and case[-1] >= 4 * p * d and fits_but_for_bubble(d, p, m, *case)
    ]
    return max(found, key=lambda mesh: (mesh[0], mesh[2]), default=None)


def fits_but_for_bubble(d, p, m, chips, node, memory, layers, heads, parameters, rows):
    divides = heads % m == node % m == layers % p == rows % d == 0
    return divides and 16 * parameters <= memory * p * m


def places_changed(*case):
    mesh = pick()(*case)
    return mesh and (mesh[0], mesh[2], mesh[1])


def always_smallest(chips, node, memory, layers, heads, parameters, rows):
    return (chips, 1, 1)


def bubble_divides(d, p, m, *case):
    return p == 1 or case[-1] // d % (4 * p) == 0


def as_if_fsdp(d, p, m, chips, node, memory, layers, heads, parameters, rows):
    return 16 * parameters <= memory * chips


def fits_or_raises(*case):
    return max([mesh for mesh in [pick()(*case)] if mesh])


def twos(at):
    return lambda *mesh_and_case: mesh_and_case[at] in (1, 2, 4, 8, 16, 32, 64)


def too_few(chips, node, memory, layers, heads, parameters, rows):
    right = ex15.pick_mesh.function(chips, node, memory, layers, heads, parameters, rows)
    return None if right is None else (right[0], 1, right[2])


def never(chips, node, memory, layers, heads, parameters, rows):
    return None


def as_numpy(*case):
    mesh = pick()(*case)
    return None if mesh is None else np.array(mesh)


def as_floats(*case):
    mesh = pick()(*case)
    return None if mesh is None else [float(size) for size in mesh]


def descending(chips, node, memory, layers, heads, parameters, rows):
    for data in range(chips, 0, -1):
        for model in range(min(node, chips), 0, -1):
            if chips % (data * model) or rows % data or heads % model or node % model:
                continue
            pipe = chips // data // model
            if (
                layers % pipe == 0
                and (pipe == 1 or rows // data >= 4 * pipe)
                and 16 * parameters / pipe / model <= memory
            ):
                return jnp.array([data, pipe, model])
    return None


def as_dict(*case):
    mesh = pick()(*case)
    return None if mesh is None else dict(zip(("data", "pipe", "model"), mesh, strict=True)).values()


def length(work=2.0, gain=None, width=None, scale=1.0, clip=True, sign=True, gain_work=None, weights_work=None):
    """longest, with other FLOPs, another group, another number of bytes, or without a limit."""

    def answer(parameters, per_character, rows, group, corner, each=2):
        b = corner * (width or each)
        spare = ((weights_work or work) * rows - b) * parameters
        short = (b - (gain_work or work) * (group if gain is None else gain)) * rows * per_character
        if clip and spare < 0:
            return 0
        if sign and short <= 0:
            return math.inf
        return scale * spare / short if short else math.inf

    return answer


def endless_first(parameters, per_character, rows, group, corner, each=2):
    if 2 * group >= corner * each:
        return math.inf
    return length()(parameters, per_character, rows, group, corner, each)


def compared(rows_enough=lambda r, b, corner: 2 * r >= b, endless=lambda g, b, corner: 2 * g >= b):
    """longest, by formula, where other comparisons decide on 0 and on inf."""

    def answer(parameters, per_character, rows, group, corner, each=2):
        b = corner * each
        if not rows_enough(rows, b, corner):
            return 0
        if endless(group, b, corner):
            return math.inf
        return (2 * rows - b) * parameters / ((b - 2 * group) * rows * per_character)

    return answer


def changed_places(parameters, per_character, rows, group, corner, each=2):
    return length()(parameters, per_character, group, rows, corner, each)


def reads_again(parameters, per_character, rows, group, corner, each=2):
    return length()(parameters, per_character * group, rows, 1, corner, each)


def without_weights(parameters, per_character, rows, group, corner, each=2):
    short = (corner * each - 2 * group) * per_character
    return math.inf if short <= 0 else 2 * parameters / short


def reads_a_part(parameters, per_character, rows, group, corner, each=2):
    return length()(parameters, per_character / group, rows, group * group, corner, each)


def by_each(parameters, per_character, rows, group, corner, each=2):
    return length()(parameters, per_character, rows, group, corner, 1 / each)


def forgets_cache_work(parameters, per_character, rows, group, corner, each=2):
    spare = (2 * rows - corner * each) * parameters
    if spare < 0:
        return 0.0
    return spare / (corner * each * rows * per_character)


def by_halving(parameters, per_character, rows, group, corner, each=2):
    def enough(at):
        flops = 2 * rows * (parameters + group * per_character * at)
        return flops >= corner * each * (parameters + rows * per_character * at)

    if not enough(0):
        return 0
    if enough(1e15):
        return float("inf")
    low, high = 0.0, 1e15
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if enough(middle) else (low, middle)
    return low


def exact(parameters, per_character, rows, group, corner, each=2):
    n, c, bytes_ = int(parameters), int(per_character), corner * each
    if 2 * rows < bytes_:
        return 0.0
    return np.inf if bytes_ <= 2 * group else float(Fraction((2 * rows - bytes_) * n, (bytes_ - 2 * group) * rows * c))


def with_numpy(parameters, per_character, rows, group, corner, each=2):
    with np.errstate(divide="ignore", invalid="ignore"):
        at = np.float64(2 * rows - corner * each) * parameters / ((corner * each - 2 * group) * rows * per_character)
    return np.float64(0 if 2 * rows < corner * each else np.inf if corner * each <= 2 * group else at)


def with_jax(parameters, per_character, rows, group, corner, each=2):
    return np.array(length()(parameters, per_character, rows, group, corner, each))


# exercise: [(wrong answer, what the message must say)]
WRONG = {
    ex15.cache_bytes: [
        (cache(pair=1), "keys and values are both kept"),
        (cache(deep=False), "each layer has its own"),
        (cache(each=2), "here `each` says another size"),
        (cache(each=1), "These are numbers"),
        (cache(rows=lambda r, d: r), "The rows are not cut over `data`"),
        (cache(heads=lambda k, m: k), "The key heads are not cut over `model`"),
        (cache(heads=lambda k, m: k / m), "That is a fraction of a key head"),
        (cache(heads=lambda k, m: k, rows=lambda r, d: r), "That is the whole cache"),
        (cache(heads=lambda k, m: 1), "You count one key head on each device"),
        (cache(heads=lambda k, m: k // m), "key_heads // model is 0"),
        (cache(heads=lambda k, m: k if k < m else k // m), "you keep all of them on each device"),
        (cache(heads=max), "the key heads of all devices along `model`"),
        (cache(heads=min), "what is left of them on one device?"),
        (cache(pair=16), "bits, and bytes are asked"),
        (cache(pair=1 / 4), "`each` says bytes, not bits"),
        (cache(heads=lambda k, m: k // m + 1), "You keep key_heads // model + 1 heads"),
        (cache(heads=lambda k, m: m // k if k < m else k // m), "you keep model // key_heads on a device"),
        (lambda *a, **k: ex15.cache_bytes.function(*a[:4], a[4] + 1, *a[5:], **k), "You count length + 1 positions"),
        (cache(heads=max, rows=lambda r, d: r), "That is what all devices hold together"),
        (axes_swapped, "You cut the rows over `model`"),
        (cache(rows=lambda r, d: 1), "That is one row"),
        (lambda *a, **k: None, "You return None"),
    ],
    ex15.own_key: [
        (lambda key: key, "all devices get the same key"),
        (fold("data", "pipe", "model"), "Which of the three axes cuts no weight?"),
        (fold("data"), "Which of the three axes cuts no weight?"),
        (fold("model"), "their layers begin equal"),
        (fold("pipe"), "parts of one layer get the same key"),
        (added, "the two numbers that you fold in"),
        (twice_pipe, "the two numbers that you fold in"),
        (times_a_number(pipe=8), "is a fixed number in your function too small"),
        (times_a_number(pipe=100), "is a fixed number in your function too small"),
        (times_a_number(model=4), "is a fixed number in your function too small"),
        (from_a_short_list, "is a fixed number in your function too small"),
        (multiplied, "is it in their keys?"),
        (sizes, "all devices get the same key"),
        (fold("stage", "model"), "The mesh has no axis `stage`"),
        (numbered, "nothing of the key that you are given is in them"),
        (bits, "expected one key, as jax.random.key makes it"),
        (split_eight, "expected one key on each device"),
        (lambda key: None, "Does it end with `return`?"),
    ],
    ex15.pick_mesh: [
        (pick("heads"), "does not divide the 9 heads"),
        (pick("node"), "its links are slow"),
        (pick("layers"), "does not divide the 15 layers"),
        (pick("rows"), "does not divide the 24 rows"),
        (pick("bubble"), "too large a bubble"),
        (pick("memory"), "GB, and has"),
        (pick(need=12), "You count 12 bytes a parameter"),
        (pick(need=2), "You count 2 bytes a parameter"),
        (pick("memory", extra=as_if_fsdp), "In your memory `data` cuts the parameters, too"),
        (pick(need=18), "larger `data`"),
        (pick(share=lambda p, m: p * m * 2), "GB, and has"),
        (pick(share=lambda p, m: m), "only `model` cuts the parameters"),
        (pick(share=lambda p, m: p), "only `pipe` cuts the parameters"),
        (pick(share=lambda p, m: 1), "they are cut over `pipe` and `model`"),
        (pick(need=16.0001), "full to the last byte"),
        (pick(rows_each=8), "You ask for 8 x `pipe` rows"),
        (pick(extra=bubble_divides), "You ask that 4 x `pipe` divides"),
        (pick(rows_each=4.0001), "exactly as many are enough"),
        (bubble_always, "without a pipeline there is no bubble"),
        (places_changed, "have changed places"),
        (pick(order=lambda d, p, m: (d, p)), "larger `model`"),
        (pick(order=lambda d, p, m: (m, d)), "`data` comes first"),
        (pick(order=lambda d, p, m: (-d, m)), "the largest is asked"),
        (pick(sizes=(1, 2, 4, 8, 16, 32, 64)), "powers of two only"),
        *((pick(extra=twos(at)), "powers of two only") for at in range(3)),
        (pick(extra=lambda d, p, m, *case: m in (1, case[1])), "You try 1 and `node` for `model`"),
        (fits_or_raises, "no mesh fits."),
        (always_smallest, "It does not fit"),
        (too_few, "and all"),
        (never, "there is a mesh that fits"),
        (lambda *case: pick()(*case) or (case[0], 1, 1), "Nor does any other mesh fit."),
        (lambda *case: 8, "three whole numbers"),
    ],
    ex15.longest: [
        (length(gain=1), "2 x group are done"),
        (length(width=2), "You read 2 bytes"),
        (length(width=1), "You read one byte"),
        (length(work=1.0), "a multiply-and-add is 2"),
        (length(scale=2.0), "It is twice the right one"),
        (length(scale=0.5), "It is half the right one"),
        (length(clip=False), "no length will do"),
        (length(sign=False), "never falls below"),
        (length(gain_work=1.0), "You do `group` FLOPs"),
        (length(weights_work=1.0), "You do one FLOP with each weight"),
        (lambda *a, **k: math.floor(v) if (v := length()(*a, **k)) < math.inf else v, "You round"),
        (lambda *a, **k: math.ceil(v) if (v := length()(*a, **k)) < math.inf else v, "You round"),
        (compared(lambda r, b, corner: r >= corner), "You compare `rows` with `corner`"),
        (compared(endless=lambda g, b, corner: g >= corner), "You compare `group` with `corner`"),
        (
            compared(lambda r, b, corner: r >= corner, lambda g, b, corner: g >= corner),
            "You compare `rows` and `group` with `corner`",
        ),
        (compared(lambda r, b, corner: 2 * r > b), "exactly `corner` FLOPs a byte here, which is enough"),
        (compared(endless=lambda g, b, corner: 2 * g > b), "Here 2 x group = corner x each"),
        (changed_places, "have changed places"),
        (reads_again, "You read the cache `group` times"),
        (reads_a_part, "You divide the bytes by `group`"),
        (by_each, "You divide by `each`"),
        (lambda *a, **k: a[3] * length()(*a, **k), "It is `group` times the right one"),
        (without_weights, "You leave the weights out of the bytes"),
        (lambda *a, **k: 0, "even without a cache"),
        (endless_first, "no length will do"),
        (forgets_cache_work, "You leave out the FLOPs that are done with the cache"),
        (lambda *a, **k: math.inf, "brings the ratio below `corner`"),
        (lambda *a, **k: None, "You return None"),
    ],
}

# exercise: [right answers in unusual forms]
RIGHT = {
    ex15.cache_bytes: [by_shape, by_lists, fraction, as_array],
    ex15.own_key: [
        fold("pipe", "model"),
        fold("model", "pipe"),
        in_line,
        both_at_once,
        from_a_list,
        far_apart,
        by_device_count,
    ],
    ex15.pick_mesh: [pick(), as_numpy, as_floats, descending, as_dict],
    ex15.longest: [length(), by_halving, exact, with_numpy, with_jax],
}

# prediction: (truth, [(wrong guess, what it must say)])
GUESSES = {
    ex15.pairs: (
        2.29,
        [(3.01, "that is the table of characters"), (4.56, "knowing nothing"), (1.2, "as uncertain as among about 10")],
    ),
    ex15.passed: (
        "100",
        [("20", "not yet what follows what"), ("300", "long before"), ("never", "up to 128 characters")],
    ),
    ex15.cache_share: (
        2097152 / 835584,
        [(2.51 / 8, "the cache of one row"), (2.51 / 2, "both are kept"), (1.6, "for each row")],
    ),
    ex15.loose: ("several", [("fewer", "sums of activations"), ("1.5", "nothing says that they are to be gathered")]),
    ex15.table: (
        {"16 rows": "data 4, model 2", "64 rows": "data 8"},
        [
            (("data 8", "data 8"), "half of the gradients"),
            (("FSDP 8", "FSDP 8"), "more than the gradients to begin with"),
            (("FSDP 4, model 2", "data 8"), "it gathers the weights twice"),
            ((None, "data 4, model 2"), "of activations"),
            ((None, "FSDP 4, model 2"), "of activations"),
        ],
    ),
    ex15.annotated: (
        "FSDP 8, layout alone",
        [("FSDP 8", "nothing in Model says so"), ("neither", "the same compiler")],
    ),
    ex15.sums: (5, [(1, "inside the loop"), (4, "bubble's ticks"), (2, "how many ticks"), (8, "sums no gradient")]),
    ex15.rows_needed: (
        "never",
        [("240", "without a cache"), ("2000", "more rows bring more cache"), ("30", "read for 8 rows")],
    ),
}

# exercise: [(a change of the solution that computes the same, why)]
SAME = {
    ex15.cache_bytes: [
        (
            "heads = max(key_heads // model, 1) -> heads = max(1, key_heads // model)",
            "the larger of two, in either order",
        ),
    ],
    ex15.pick_mesh: [
        (
            "for pipe in range(1, chips + 1): -> for pipe in range(1, chips + 2):",
            "an axis with more devices than there are chips never divides them",
        ),
        (
            "for model in range(1, chips + 1): -> for model in range(1, chips + 2):",
            "an axis with more devices than there are chips never divides them",
        ),
    ],
    ex15.longest: [
        (
            "return math.inf if short <= 0 else spare / short -> return math.inf if short <= 1 else spare / short",
            "with whole numbers it is 0 or far above 1",
        ),
    ],
}
