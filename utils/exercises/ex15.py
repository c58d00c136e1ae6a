"""Exercises of notebook 15, A language model, cut every way."""

from __future__ import annotations

import functools
import inspect
import math
import re
from itertools import product

import jax
import numpy as np
from jax.sharding import PartitionSpec as P

from utils.exercises import Choice, Prediction, Wrong, exercise, explained, number, several, shown
from utils.mesh import make_mesh

pairs = Prediction(
    "",
    {
        3.01 / 2.29: "that is the table of characters; what comes before a character says much about it",
        4.56 / 2.29: "that is the loss of knowing nothing",
        None: "exp(loss) is the number of equally likely characters: a table of pairs is as uncertain as among about 10",
    },
    within=0.1,
)
passed = Choice(
    {
        "20": "by then it has learned which characters are common, and not yet what follows what",
        "100": "",
        "300": "the table of pairs looks at one character only; a network has that long before",
        "never": "the network sees up to 128 characters, the table one",
    },
    moment=True,
)
cache_share = Prediction(
    "bytes of cache for one of weights",
    {
        1 / 8: "that is the cache of one row; there are 8",
        1 / 2: "keys and values: both are kept",
        1 / 4: "keys and values are kept, in each of the two layers",
        1 / 128: "that is the cache of one character in each row",
        1 / 16: "that is the cache of one row, and of keys or values alone",
        None: "count 2 x layers x length x heads x size numbers for each row",
    },
    within=0.05,
)
loose = Choice(
    {
        "fewer": "sums of activations travel, of all rows, and there are more of them than weights",
        "1.5": "that is what gathering the weights costs; nothing says that they are to be gathered",
        "several": "",
    }
)
table = Choice(
    {
        "data 8": "",
        "data 4, model 2": "",
        "FSDP 8": "",
        "FSDP 4, model 2": "",
    },
    own={
        "16 rows": {
            "data 8": "half of each layer on a device means half of the gradients to sum",
            "FSDP 8": "it gathers the weights twice, and sums the gradients as well",
            "FSDP 4, model 2": "it gathers the weights twice, and sums the gradients as well",
        },
        "64 rows": {
            "data 4, model 2": "its sums over model are of activations, and there are four times as many of them",
            "FSDP 8": "what it sends does not grow with the rows, but it is more than the gradients to begin with",
            "FSDP 4, model 2": "its sums over model are of activations, and there are four times as many of them",
        },
    },
)
annotated = Choice(
    {
        "FSDP 8": "there a constraint in the loss says how the weights lie while they compute; nothing in Model says so",
        "FSDP 8, layout alone": "",
        "neither": "nnx.jit hands the arrays to the same compiler: what does it know of the weights?",
    }
)
sums = Prediction(
    "times",
    {
        1: "it stands inside the loop: where does the transpose of pvary stand?",
        4: "one for each microbatch, and the bubble's ticks are computed as well",
        2: "it is taken in each tick; how many ticks are there?",
        8: "forward and back? The forward pass sums no gradient; and how many ticks are there?",
        10: "the forward pass sums no gradient",
    },
    things=True,
)
rows_needed = Choice(
    {
        "30": "that is where a number has to be read for 8 rows",
        "240": "so it would be without a cache: weights are read once for all rows, the cache for one row alone",
        "2000": "more rows bring more cache to read, each for its own row alone",
        "never": "",
    }
)

GB = 1e9


def _cache_slips(layers, key_heads, size, rows, length, data, model, each):
    mine, heads = rows / data, max(key_heads / model, 1)
    right = 2 * layers * heads * size * mine * length * each
    return right, [
        (right / 2, "That is half of it: keys and values are both kept."),
        (right / layers, "That is the cache of one layer; each layer has its own."),
        (right / each, "These are numbers; a number has `each` bytes."),
        (right / each * 2, "You take 2 bytes a number; here `each` says another size."),
        (right / each * 4, "You take 4 bytes a number; here `each` says another size."),
        (right * data, "The rows are not cut over `data`."),
        (right / heads * key_heads, "The key heads are not cut over `model`."),
        (right / heads * key_heads * data, "That is the whole cache; a device holds its rows and its heads."),
        (
            right / heads * key_heads / model,
            "That is a fraction of a key head. Where there are fewer of them than `model`, each device keeps one whole.",
        ),
        (right / heads, "You count one key head on each device; it may keep several."),
        (right / heads * model, "You count `model` heads; a device keeps key_heads / model of them, at least one."),
        (
            right / heads * (key_heads // model + 1),
            "You keep key_heads // model + 1 heads on a device; it is key_heads / model, and at least one.",
        ),
        (
            right / heads * (model // key_heads if key_heads < model else heads),
            "Where there are fewer key heads than `model`, you keep model // key_heads on a device; each keeps one.",
        ),
        (right / length, "That is one position; the cache has `length` of them."),
        (right / length * (length + 1), "You count length + 1 positions; the cache has `length` of them."),
        (right / size, "That is without the `size` numbers of each head."),
        (right / mine, "That is one row; a device holds rows / data of them."),
        (
            right / heads * (key_heads if key_heads < model else heads),
            "Where there are fewer key heads than `model`, you keep all of them on each device; each keeps one.",
        ),
        (
            right / heads * (key_heads // model),
            "Where there are fewer key heads than `model`, key_heads // model is 0; each device keeps one.",
        ),
        (
            right / heads * min(key_heads, model),
            "You count min(key_heads, model) heads; what is left of them on one device?",
        ),
        (right * model, "You count the key heads of all devices along `model`; one device is asked."),
        (right * data * model, "That is what all devices hold together; one device is asked."),
        (right * 8, "That is eight times as many: bits, and bytes are asked."),
        (right / 8, "That is an eighth: `each` says bytes, not bits."),
        (
            2 * layers * size * length * each * max(key_heads / data, 1) * rows / model,
            "You cut the rows over `model` and the key heads over `data`.",
        ),
        (
            2 * layers * size * length * each * max(key_heads // data, 1) * (rows // model),
            "You cut the rows over `model` and the key heads over `data`.",
        ),
    ]


# The sizes differ in all that a slip could confuse: more key heads than `model`, fewer, another number of bytes.
CACHES = (
    (3, 20, 24, 77, 100, 7, 4, 2),
    (5, 2, 24, 30, 70, 3, 8, 2),
    (7, 9, 10, 44, 50, 11, 3, 1),
    (6, 1, 12, 26, 40, 13, 5, 8),
)


def _judge_cache(answer):
    said = [
        number(answer(*case) if each == 2 else answer(*case, each=each), "one number, of bytes")
        for *case, each in CACHES
    ]
    rights, slips = zip(*(_cache_slips(*case) for case in CACHES), strict=True)
    wrong = [at for at, right in enumerate(rights) if not math.isclose(said[at], right, rel_tol=1e-9)]
    if wrong:
        names = "layers", "key_heads", "size", "rows", "length", "data", "model", "each"
        case = ", ".join(f"{name}={value}" for name, value in zip(names, CACHES[wrong[0]], strict=True))
        words = _by_case(said, slips) or "How many rows, heads, layers and bytes has one device, of keys and of values?"
        raise Wrong(f"With {case} you return {said[wrong[0]]:,.10g}. {words}")


def _by_case(said, slips):
    """The words of the slip that gives what is said in every case; slips: for each case, (number, words) in one order."""
    return explained(said, [([one for one, _ in each], each[0][1]) for each in zip(*slips, strict=True)], most=1)


@exercise(
    _judge_cache,
    "A device has rows / data rows, and key_heads / model key heads, but never less than one. For each of them it keeps "
    "two arrays, of length x size numbers, in each layer.",
)
def cache_bytes(layers, key_heads, size, rows, length, data, model, each=2):
    """Return the bytes of keys and values that one device of the mesh holds."""
    heads = max(key_heads // model, 1)
    return 2 * layers * heads * size * (rows // data) * length * each


@functools.cache
def _places(sizes):
    """The mesh, and of each device its (data, pipe, model), row by row."""
    return make_mesh(sizes, ("data", "pipe", "model")), list(product(*map(range, sizes)))


def _judge_own_key(answer):
    for sizes in ((2, 2, 2), (1, 2, 4), (1, 4, 2)):
        mesh, places = _places(sizes)

        def program(key):
            got = _with_known_axes(answer, key)
            if got is None:
                raise Wrong("Your function returns None. Does it end with `return`?")
            if not hasattr(got, "dtype") or not jax.dtypes.issubdtype(got.dtype, jax.dtypes.prng_key):
                it = f"{got.dtype} of shape {got.shape}" if isinstance(got, jax.Array) else shown(got)
                raise Wrong(f"Your function returns {it}; expected one key, as jax.random.key makes it.")
            if got.shape:
                raise Wrong(f"Your function returns keys of shape {got.shape}; expected one key on each device.")
            return jax.random.key_data(got).reshape(1, 1, 1, -1)

        mapped = jax.shard_map(program, mesh=mesh, in_specs=P(), out_specs=P("data", "pipe", "model"), check_vma=False)
        mapped = jax.jit(mapped)
        drawn, others = (
            [tuple(map(int, key)) for key in np.asarray(mapped(jax.random.key(seed))).reshape(len(places), -1)]
            for seed in (7, 8)
        )
        _refuse_keys(dict(zip(places, drawn, strict=True)), sizes)
        if drawn == others:
            raise Wrong(
                "The places get keys of their own, but the same ones from jax.random.key(7) and jax.random.key(8): nothing of "
                "the key that you are given is in them."
            )
    _refuse_small_numbers(answer)


def _with_known_axes(answer, key):
    try:
        return answer(key)
    except Wrong as wrong:
        unknown = re.search(r"unbound axis name: (\w+)", str(wrong.__cause__))
        if unknown and isinstance(wrong.__cause__, NameError):
            said = f"The mesh has no axis `{unknown[1]}`; its axes are `data`, `pipe` and `model`."
            raise Wrong(said) from wrong.__cause__
        raise


LARGE = {"data": 1, "pipe": 5, "model": 128}  # more places than there are devices


def _refuse_small_numbers(answer):
    """Refuse keys that meet on a large mesh only; its places are lanes of `vmap`, where not all that is right runs."""
    names = getattr(getattr(inspect.unwrap(answer), "__code__", None), "co_names", ())
    if {"device_count", "devices"} & set(names):  # a number that grows with the mesh, and not with the lanes
        return
    mapped = answer
    for axis, size in reversed(LARGE.items()):
        mapped = jax.vmap(mapped, in_axes=None, axis_name=axis, axis_size=size)
    try:
        drawn = np.asarray(jax.random.key_data(jax.jit(mapped)(jax.random.key(7)))).reshape(
            math.prod(LARGE.values()), -1
        )
    except Exception:
        return
    first = {}
    for place, key in zip(product(*map(range, LARGE.values())), map(tuple, drawn.tolist()), strict=True):
        if key in first:
            raise Wrong(
                f"On a mesh of {' x '.join(map(str, LARGE.values()))} (data, pipe, model) the devices at {first[key]} and "
                f"{place} hold different pieces, and get the same key. On eight devices none do: is a fixed number in your "
                "function too small for more?"
            )
        first[key] = place


def _refuse_keys(drawn, sizes):
    on = f"On a mesh of {' x '.join(map(str, sizes))} (data, pipe, model)"
    for (one, a), (two, b) in product(drawn.items(), repeat=2):
        if one[1:] == two[1:] and a != b:
            raise Wrong(
                f"{on} the devices at {one} and {two} hold copies of one piece, and draw different numbers: their weights "
                "would differ from the first step on. Which of the three axes cuts no weight?"
            )
    kinds = set(drawn.values())
    if len(kinds) == 1:
        raise Wrong(f"{on} all devices get the same key: each piece of a weight begins with the same numbers.")
    for (one, a), (two, b) in product(drawn.items(), repeat=2):
        if one[1:] != two[1:] and a == b:
            where = (
                "stages get the same key: their layers begin equal. What tells them apart, and is it in their keys?"
                if one[2] == two[2]
                else "parts of one layer get the same key: what tells them apart, and is it in their keys?"
                if one[1] == two[1]
                else "places get the same key: the two numbers that you fold in, or make one number of, meet."
            )
            raise Wrong(f"{on} the devices at {one} and {two} hold different pieces, and these two {where}")


@exercise(
    _judge_own_key,
    "Fold in the place along each axis that cuts weights, one after the other: a sum of two places is the same for "
    "(0, 1) and (1, 0). jax.lax.axis_index tells the place.",
)
def own_key(key):
    """Per device, axes data, pipe, model: one key for all -> the key of its piece."""
    key = jax.random.fold_in(key, jax.lax.axis_index("pipe"))
    return jax.random.fold_in(key, jax.lax.axis_index("model"))


RULES = ("heads", "node", "layers", "rows", "bubble", "memory")


def _broken(mesh, chips, node, memory, layers, heads, parameters, rows):
    """By rule, what does not fit; no entry where it does."""
    data, pipe, model = mesh
    held = 16 * parameters / (pipe * model)
    return {
        rule: words
        for rule, (broken, words) in {
            "heads": (heads % model, f"model = {model} does not divide the {heads} heads"),
            "node": (
                node % model,
                f"model = {model} does not divide the {node} chips of a machine: its links are slow",
            ),
            "layers": (layers % pipe, f"pipe = {pipe} does not divide the {layers} layers"),
            "rows": (rows % data, f"data = {data} does not divide the {rows} rows"),
            "bubble": (
                pipe > 1 and rows < 4 * pipe * data,
                f"a copy has {rows / data:g} rows for {pipe} stages, less than 4 x {pipe}: too large a bubble",
            ),
            "memory": (
                held > memory,
                f"a chip holds 16 x {parameters / GB:g}e9 / {pipe * model} = {held / GB:.1f} GB, and has {memory / GB:g}",
            ),
        }.items()
        if broken
    }


def _meshes(chips):
    sizes = range(1, chips + 1)
    return [(d, p, chips // (d * p)) for d in sizes if chips % d == 0 for p in sizes if chips % (d * p) == 0]


def _best(case):
    fit = [mesh for mesh in _meshes(case[0]) if not _broken(mesh, *case)]
    return max(fit, key=lambda mesh: (mesh[0], mesh[2]), default=None)


# chips, node, memory, layers, heads, parameters, rows: in each, another rule decides.
MACHINES = (
    (16, 8, 16e9, 24, 12, 2.5e9, 64),
    (64, 8, 32e9, 30, 32, 13e9, 96),
    (48, 8, 24e9, 36, 24, 7e9, 192),
    (32, 4, 80e9, 48, 64, 30e9, 256),
    (24, 4, 40e9, 21, 8, 6.1e9, 36),
    (64, 16, 16e9, 32, 16, 20e9, 12),
    (16, 4, 64e9, 18, 9, 11e9, 48),
    (8, 8, 16e9, 12, 8, 1.0e9, 24),
    (8, 4, 16e9, 10, 6, 20e9, 64),
    (16, 8, 32e9, 16, 8, 16e9, 128),
    (24, 4, 11.5e9, 15, 8, 5.5e9, 24),
    (16, 8, 16e9, 12, 8, 0.5e9, 24),
    (8, 4, 16e9, 10, 8, 1.05e9, 24),
    (8, 8, 16e9, 9, 8, 8e9, 40),
    (5, 4, 16e9, 10, 8, 4.5e9, 20),
    (12, 12, 16e9, 7, 24, 2.5e9, 20),
    (4, 2, 16e9, 10, 8, 3.5e9, 10),
)


def _variants():
    """Ways to go wrong that no one mesh tells: (a solver of a case, words)."""

    def best(fits, order=lambda mesh: (mesh[0], mesh[2])):
        def solve(case):
            meshes = [mesh for mesh in _meshes(case[0]) if fits(mesh, *case)]
            return max(meshes, key=order, default=None)

        return solve

    def but(rule, instead):
        return best(lambda mesh, *case: not set(_broken(mesh, *case)) - {rule} and instead(mesh, *case))

    def fit(mesh, *case):
        return not _broken(mesh, *case)

    def held(bytes_, words, cut=lambda mesh: mesh[1] * mesh[2]):
        return but("memory", lambda mesh, *case: bytes_ * case[5] <= case[2] * cut(mesh)), words

    def twos(*axes):
        fits = best(lambda mesh, *case: fit(mesh, *case) and not any(mesh[at] & (mesh[at] - 1) for at in axes))
        return fits, "You try powers of two only; other sizes divide as well."

    def swapped(case):
        data, pipe, model = _best(case) or (None, None, None)
        return data and (data, model, pipe)

    return [
        (swapped, "`pipe` and `model` have changed places: (data, pipe, model) is asked."),
        (
            but("memory", lambda mesh, chips, node, memory, layers, heads, n, rows: 16 * n <= memory),
            "You hold all 16 x parameters bytes against one chip's memory; they are cut over `pipe` and `model`.",
        ),
        (
            but(
                "memory", lambda mesh, chips, node, memory, layers, heads, n, rows: 16 * n < memory * mesh[1] * mesh[2]
            ),
            "A chip that is full to the last byte fits: at most `memory`.",
        ),
        (
            but("memory", lambda mesh, chips, node, memory, layers, heads, n, rows: 16 * n <= memory * mesh[2]),
            "In your memory only `model` cuts the parameters; `pipe` does as well.",
        ),
        (
            but("memory", lambda mesh, chips, node, memory, layers, heads, n, rows: 16 * n <= memory * mesh[1]),
            "In your memory only `pipe` cuts the parameters; `model` does as well.",
        ),
        held(16, "In your memory `data` cuts the parameters, too; each data-parallel copy has all of them.", math.prod),
        *(held(few, f"You count {few} bytes a parameter; a chip holds 16.") for few in (2, 4, 12)),
        (
            but("bubble", lambda mesh, *case: case[-1] >= 4 * mesh[1] * mesh[0]),
            "You ask for 4 x `pipe` rows where `pipe` is 1, too: without a pipeline there is no bubble.",
        ),
        (
            but("bubble", lambda mesh, *case: mesh[1] == 1 or case[-1] > 4 * mesh[1] * mesh[0]),
            "You ask for more than 4 x `pipe` rows in a copy; exactly as many are enough.",
        ),
        (
            but("bubble", lambda mesh, *case: mesh[1] == 1 or case[-1] // mesh[0] % (4 * mesh[1]) == 0),
            "You ask that 4 x `pipe` divides the rows of a copy; it has at least as many, that is all.",
        ),
        (
            but("bubble", lambda mesh, *case: mesh[1] == 1 or case[-1] >= 8 * mesh[1] * mesh[0]),
            "You ask for 8 x `pipe` rows in a copy; 4 x `pipe` are enough.",
        ),
        (best(fit, lambda mesh: (mesh[2], mesh[0])), "You take the largest `model` first; `data` comes first."),
        (best(fit, lambda mesh: (-mesh[0], mesh[2])), "You take the smallest `data`; the largest is asked."),
        *(twos(*axes) for axes in ((0,), (1,), (2,), (1, 2), (0, 1, 2))),
        (
            best(lambda mesh, *case: fit(mesh, *case) and mesh[2] in (1, case[1])),
            "You try 1 and `node` for `model`; whatever divides both `node` and the heads will do.",
        ),
    ]


def _judge_pick_mesh(answer):
    """The first case that is wrong; the words of a variant, where one gives the same in all cases."""
    said = [_mesh_of(answer, case) for case in MACHINES]
    try:
        _judge_meshes(said)
    except Wrong as wrong:
        plain = [None if mesh is None else _plain(mesh) for mesh in said]
        words = list({words: None for solve, words in _variants() if [solve(case) for case in MACHINES] == plain})
        if len(words) == 1:
            where = str(wrong).partition(". It ")[0].partition(", but there is")[0]
            raise Wrong(f"{where}. {words[0]}") from None
        raise


def _mesh_of(answer, case):
    try:
        return answer(*case)
    except Wrong as wrong:
        if wrong.__cause__ and _best(case) is None:
            raise Wrong(f"{wrong}. {_spelled(case)} no mesh fits.") from wrong.__cause__
        raise


def _spelled(case):
    chips, node, memory, layers, heads, parameters, rows = case
    return (
        f"With {chips} chips, {node} in a machine, {memory / GB:g} GB each, {layers} layers, {heads} heads, "
        f"{parameters / GB:g}e9 parameters and {rows} rows"
    )


def _plain(mesh):
    try:
        return tuple(int(size) for size in mesh)
    except (TypeError, ValueError):
        return ()


def _judge_meshes(said):
    for case, got in zip(MACHINES, said, strict=True):
        want, of = _best(case), _spelled(case)
        if got is None:
            if want is not None:
                raise Wrong(f"{of} you return None, but there is a mesh that fits. Which of the rules is too strict?")
            continue
        words = several(got, 3, "three whole numbers (data, pipe, model), or None", f"{of} you return")
        mesh = tuple(
            number(each, "a whole number above 0", said=f"{of} one of your sizes is", whole=True) for each in words
        )
        said = f"{of} you return {mesh}"
        if min(mesh) < 1:
            raise Wrong(f"{said}; each axis has at least one device.")
        if math.prod(mesh) != case[0]:
            raise Wrong(f"{said}: these are {math.prod(mesh)} chips, and all {case[0]} are used.")
        broken = _broken(mesh, *case)
        if broken:
            nor = "" if want else " Nor does any other mesh fit."
            raise Wrong(f"{said}. It does not fit: {next(iter(broken.values()))}.{nor}")
        if mesh == want:
            continue
        if mesh[0] < want[0]:
            raise Wrong(f"{said}. It fits, but there is a mesh that fits with a larger `data`.")
        raise Wrong(
            f"{said}. It fits, but of the meshes with this `data` there is one that fits with a larger `model`."
        )


@exercise(
    _judge_pick_mesh,
    "Go through all pipe and model whose product divides chips; data is what remains. Keep what fits: heads % model, "
    "node % model, layers % pipe, rows % data, the bubble, the memory. Then max(..., key=...) by (data, model).",
)
def pick_mesh(chips, node, memory, layers, heads, parameters, rows):
    """Return (data, pipe, model), or None where no mesh fits."""
    fit = []
    for pipe in range(1, chips + 1):
        for model in range(1, chips + 1):
            data, rest = divmod(chips, pipe * model)
            if rest or heads % model or node % model or layers % pipe or rows % data:
                continue
            enough = pipe == 1 or rows >= 4 * pipe * data
            if enough and 16 * parameters <= memory * pipe * model:
                fit.append((data, model, pipe))
    if not fit:
        return None
    data, model, pipe = max(fit)
    return data, pipe, model


def _longest(parameters, per_character, rows, group, corner, each, work=2.0, share=None):
    """FLOPs = rows (work parameters + share group c L), corner x bytes = corner each (parameters + rows c L)."""
    begins = (work * rows - corner * each) * parameters
    grows = ((work if share is None else share) * group - corner * each) * rows * per_character
    if begins < 0:
        return 0.0
    return math.inf if grows >= 0 else begins / -grows


# parameters, per_character, rows, group, corner, each
TEXTS = (
    (7e9, 3e5, 500, 4, 240, 2),
    (13e9, 9e5, 900, 8, 300, 1),
    (2e9, 1e5, 100, 4, 240, 2),
    (5e9, 2e5, 96, 64, 24, 2),
    (3e9, 4e5, 700, 3, 120, 4),
    (6e9, 2e5, 240, 5, 240, 2),
    (4e9, 3e5, 100, 24, 24, 2),
    (4e9, 3e5, 20, 30, 24, 2),
    (4e9, 3e5, 24, 30, 24, 2),
    (8e9, 6e5, 150, 6, 240, 1),
    (9e9, 2e5, 300, 20, 36, 1),
)


def _judge_longest(answer):
    said, rights = [], [_longest(*case) for case in TEXTS]
    for *case, each in TEXTS:
        try:
            got = answer(*case) if each == 2 else answer(*case, each=each)
        except Wrong as wrong:
            if isinstance(wrong.__cause__, ZeroDivisionError) and 2 * case[3] == case[4] * each:
                of = _text_case((*case, each))
                raise Wrong(
                    f"{of}: {wrong}. Here 2 x group = corner x each: no length is too long."
                ) from wrong.__cause__
            raise
        endless = (
            isinstance(got, float | np.floating | np.ndarray | jax.Array) and np.ndim(got) == 0 and got == math.inf
        )
        said.append(math.inf if endless else number(got, "one number, a length"))
    words = _by_case(said, [_longest_slips(*case) for case in TEXTS])
    for case, got, right in zip(TEXTS, said, rights, strict=True):
        if got == right or math.isclose(got, right, rel_tol=1e-6, abs_tol=1e-6):
            continue
        raise Wrong(f"{_text_case(case)} you return {got:,g}. {words or _why_longest(got, right, *case[2:])}")


def _text_case(case):
    names = "parameters", "per_character", "rows", "group", "corner", "each"
    return "With " + ", ".join(f"{name}={value:g}" for name, value in zip(names, case, strict=True))


def _longest_slips(n, c, rows, group, corner, each):
    right = _longest(n, c, rows, group, corner, each)
    spare, short = (2 * rows - corner * each) * n, (corner * each - 2 * group) * rows * c
    met = spare / short if short else math.inf  # with no look at the signs
    return [
        (
            0 if rows < corner else right,
            "You compare `rows` with `corner`; compare 2 FLOPs for each row with a weight's `each` bytes.",
        ),
        (
            0 if spare < 0 else math.inf if group >= corner else met,
            "You compare `group` with `corner`; compare 2 x `group` FLOPs with the `each` bytes of a number.",
        ),
        (
            0 if rows < corner else math.inf if group >= corner else met,
            "You compare `rows` and `group` with `corner`; each does 2 FLOPs, and a number has `each` bytes.",
        ),
        (_longest(n, c, group, rows, corner, each), "`rows` and `group` have changed places."),
        (_longest(n, c, rows, group, corner, 1 / each), "You divide by `each`; a number has `each` bytes."),
        (
            _longest(n, c * group, rows, 1, corner, each),
            "You read the cache `group` times; heads that share read it once.",
        ),
        (
            _longest(n, c / group, rows, group * group, corner, each),
            "You divide the bytes by `group`; per_character counts what is shared once already.",
        ),
        (right * group, "It is `group` times the right one: `group` counts in the FLOPs alone, and there once."),
        (
            math.inf if short <= 0 else 2 * rows * n / short,
            "You leave the weights out of the bytes; they are read as well, once for all rows.",
        ),
        (_longest(n, c, rows, 1, corner, each), "You do 2 FLOPs with each number of cache, and 2 x group are done."),
        (_longest(n, c, rows, group, corner, 1), "You read one byte for each number; it has `each`."),
        (_longest(n, c, rows, group, corner, 2), "You read 2 bytes for each number; `each` may say another size."),
        (_longest(n, c, rows, group, corner, each, 1.0), "You do one FLOP with each number; a multiply-and-add is 2."),
        (right * rows, "That is the sum over the rows: each row has a text of this length at most."),
        (right * 2, "It is twice the right one: keys and values are both in per_character already."),
        (right / 2, "It is half the right one: keys and values are both in per_character already."),
        (right * c, "These are numbers of cache, not characters: a position has per_character of them."),
        (_longest(n, c, rows, 0, corner, each), "You leave out the FLOPs that are done with the cache."),
        (
            _longest(n, c, rows, group, corner, each, 2.0, 1.0),
            "You do `group` FLOPs with each number of cache; a multiply-and-add is 2, so 2 x group are done.",
        ),
        (
            _longest(n, c, rows, group, corner, each, 1.0, 2.0),
            "You do one FLOP with each weight for a row; a multiply-and-add is 2.",
        ),
        (
            _longest(n, c, rows, 1 / group, corner, each),
            "You divide by `group`; heads that share do more FLOPs, not fewer.",
        ),
        (math.floor(right) if right < math.inf else right, "You round: a real number is asked."),
        (math.ceil(right) if right < math.inf else right, "You round: a real number is asked."),
    ]


def _why_longest(got, right, rows, group, corner, each):
    if right == 0 and 2 * rows == corner * each:
        return "Without a cache there are exactly `corner` FLOPs a byte here, and with any fewer: the length is 0."
    if right == 0:
        return "With these few rows there are fewer FLOPs a byte than `corner` even without a cache: no length will do."
    if got == 0 and 2 * rows == corner * each:
        return "Without a cache there are exactly `corner` FLOPs a byte here, which is enough; is it with a cache?"
    if got == 0:
        return "0 says: too few FLOPs a byte even without a cache. All rows do 2 FLOPs with a weight that is read once."
    if math.isinf(right):
        return "Each number of cache alone gives at least `corner` FLOPs a byte here: a longer text never falls below."
    if math.isinf(got):
        return "There is a length at which the cache, which each row reads for itself, brings the ratio below `corner`."
    return (
        "At that length the FLOPs, 2 x rows x (parameters + group x per_character x length), are not `corner` times the "
        "bytes."
    )


@exercise(
    _judge_longest,
    "FLOPs: 2 rows (parameters + group x per_character x length). Bytes: each (parameters + rows x per_character x "
    "length). Set FLOPs = corner x bytes, and solve for the length. Which signs can the two sides have?",
)
def longest(parameters, per_character, rows, group, corner, each=2):
    """Return the length up to which decoding does at least `corner` FLOPs a byte."""
    spare = (2 * rows - corner * each) * parameters  # without any cache
    short = (corner * each - 2 * group) * rows * per_character  # for each character
    if spare < 0:
        return 0
    return math.inf if short <= 0 else spare / short
