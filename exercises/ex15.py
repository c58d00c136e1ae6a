"""Exercises and predictions for lesson 15, A language model, sharded every way."""

import math

from exercises.framework import Edit, Mistake, Prediction, exercise

even = Prediction(
    math.log(96),
    "the model gives each character p = 1/96, so its loss is ln 96",
    {
        1 / 96: "that's p; the loss is -ln p",
        96: "that's the number of characters that the model is undecided between, but the loss is its logarithm",
        math.log2(96): "that's in bits, but the loss uses the natural logarithm",
        -math.log(96): "the loss is -ln p, and the logarithm of p is negative",
    },
    rel_tol=0.01,
)
parts = Prediction(
    4,
    "the names of `up` are layer, width and hidden: width is split over fsdp, and hidden over model",
    {
        8: "no rule maps a name of `up` to data, so two devices hold each piece",
        2: "two names of `up` have a rule: width and hidden",
        1: "two names of `up` have a rule: width and hidden",
    },
    "pieces",
)
stores = Prediction(
    0.375,
    "every weight has a width, which fsdp splits into eight, and Adam's moments have the same names as the weights: 3/8",
    {
        3: "that would be right on 8 x 1 x 1, but here fsdp splits the width of each weight",
        1: "every weight has a width, which fsdp splits into eight",
        0.125: "that's only the weights, but Adam's two moments are sharded in the same way",
        0.25: "that's only Adam's two moments",
        24: "that's the total of eight devices if everything is replicated",
    },
    "times all weights",
    rel_tol=0.02,
)
grown = Prediction(
    1.67 - 0.78 + 4 * 0.78,
    "0.89 are gradients, which stay the same, and 0.78 are activations, which become four times as many: 0.89 + 3.12",
    {
        4 * 1.67: "only the bytes over model grow with the rows, not the gradients",
        1.67: "activations are sent over model, and each row has its own",
        4 * 0.78: "that's the part over model, but the gradients are sent as well",
        0.78 + 4 * 0.89: "it's the other way round: the bytes over model grow, and those of the gradients don't",
    },
    "times all weights",
    rel_tol=0.02,
)
cache_share = Prediction(
    8 * 16_384 / 104_448,
    "it's 2 x 2 x 64 x 4 x 16 = 16,384 elements in a row's cache, in 8 rows, compared with 104,448 weights",
    {
        16_384 / 104_448: "that's the cache of one row, but there are 8",
        4 * 16_384 / 104_448: "keys and values are kept in each of the two layers",
        2 * 16_384 / 104_448: "keys and values are kept in each of the two layers",
        8 * 256 / 104_448: "that's one position in each row, but a row keeps 64",
    },
    "bytes",
    rel_tol=0.02,
)
rows_needed = Prediction(
    "no",
    mistakes={
        "yes": "without a cache, 241 rows would be enough, but each row has its own cache, which is read "
        "only for that row"
    },
)

SIZES = {"data": 2, "fsdp": 4, "model": 3}
RULES = {"batch": "data", "width": "fsdp", "head": "model", "hidden": "model", "expert": "pipe"}


@exercise(
    "Go through names and shape together. Keep a set of the axes already used. `rules.get(name)` "
    "is None if a name has no rule.",
    cases={
        "up (5, 12, 21)": (("layer", "width", "hidden"), (5, 12, 21), RULES, SIZES),
        "width of 10, over 4 devices": (("layer", "width", "hidden"), (5, 10, 21), RULES, SIZES),
        "head and hidden in one array": (("head", "width", "hidden"), (9, 20, 15), RULES, SIZES),
        "11 heads, 15 hidden features": (("head", "width", "hidden"), (11, 20, 15), RULES, SIZES),
        "experts, and no axis pipe": (("expert", "width"), (6, 28), RULES, SIZES),
        "a name that appears twice": (("width", "width"), (8, 16), RULES, SIZES),
        "one number": ((), (), RULES, SIZES),
        "an axis of 1": (("batch", "hidden"), (7, 33), RULES, {"data": 1, "fsdp": 4, "model": 11}),
    },
    mistakes=[
        Mistake(
            Edit(" and size % sizes[axis] == 0", ""), "an axis whose size doesn't divide a dimension can't split it"
        ),
        Mistake(
            Edit(" and axis not in taken", ""),
            "an array may use each axis of the mesh only once, and the first dimension takes it",
        ),
        Mistake(Edit("axis in sizes and", "axis and"), "a rule may name an axis that this mesh doesn't have"),
        Mistake(
            Edit("spec.append(axis if fits else None)", "spec += [axis] * fits"),
            "a dimension that isn't split needs an entry too: None",
        ),
    ],
)
def spec_of(names, shape, rules, sizes):
    """Return a tuple with the axis that splits each dimension, or None."""
    spec, taken = [], set()
    for name, size in zip(names, shape, strict=True):
        axis = rules.get(name)
        fits = axis in sizes and size % sizes[axis] == 0 and axis not in taken
        spec.append(axis if fits else None)
        if fits:
            taken.add(axis)
    return tuple(spec)


@exercise(
    "A device stores rows / data rows, and key_heads / model key heads, but at least one head. For each row "
    "and head, it stores two arrays of length x size elements in each layer.",
    cases=[
        (3, 20, 24, 77, 100, 7, 4, 2),
        (5, 2, 24, 30, 70, 3, 8, 2),
        (7, 9, 10, 44, 50, 11, 3, 1),
        (6, 1, 12, 26, 40, 13, 5, 4),
    ],
    mistakes=[
        Mistake(Edit("return 2 * layers", "return layers"), "both keys and values are kept"),
        Mistake(
            Edit("max(key_heads / model, 1)", "key_heads / model"),
            "if there are fewer key heads than `model`, each device stores one entire head",
        ),
        Mistake(
            Edit("max(key_heads / model, 1)", "key_heads"),
            "a device stores only its own key heads, because `model` splits them",
        ),
        Mistake(Edit("(rows / data)", "rows"), "a device stores only its own rows, because `data` splits them"),
        Mistake(Edit(" * each", ""), "you're counting elements, and each takes `each` bytes"),
        Mistake(Edit("2 * layers", "2"), "that's the cache of one layer, but each layer has its own"),
    ],
)
def cache_bytes(layers, key_heads, size, rows, length, data, model, each):
    """Return the bytes of keys and values that one device of the mesh stores."""
    heads = max(key_heads / model, 1)
    return 2 * layers * heads * size * (rows / data) * length * each


@exercise(
    "FLOPs: rows * (2 * parameters + 2 * group * C), bytes: 2 * (parameters + rows * C), where C is "
    "length * per_character. Set the ratio equal to corner, and solve for length. What is the sign "
    "of C's coefficient?",
    cases=[
        (7e9, 65_536, 300, 4, 241),
        (104_448, 256, 1000, 1, 241),
        (7e9, 65_536, 100, 4, 241),
        (3e9, 8192, 500, 300, 241),
        (70e9, 40_960, 700, 8, 295.4),
        (5e9, 3000, 20, 260, 241),
        (2e9, 4096, 150, 241, 241),
        (2e9, 4096, 260, 241, 241),
    ],
    mistakes=[
        Mistake(Edit("corner - group", "corner - 1"), "`group` query heads use each cache element that is read"),
        Mistake(Edit("rows * per_character *", "per_character *"), "each row has a cache of its own"),
    ],
)
def longest(parameters, per_character, rows, group, corner):
    """Return the length up to which decoding does at least `corner` FLOPs per byte."""
    if rows < corner:  # even without a cache, there are too few rows
        return 0
    if group >= corner:  # each cache element is used often enough
        return math.inf
    return parameters * (rows - corner) / (rows * per_character * (corner - group))
