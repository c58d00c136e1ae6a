"""Exercises of notebook 11, Cut the layer: tensor and sequence parallelism."""

from __future__ import annotations

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from utils.compat import type_text, varying
from utils.count.cost import cost
from utils.exercises import (
    Choice,
    Prediction,
    Wrong,
    amount,
    by_factors,
    exercise,
    explained,
    number,
    same,
    shown,
)
from utils.exercises.prediction import ended
from utils.mesh import make_mesh

sums_a_layer = Prediction(
    "all-reduces",
    {
        1 / 2: "those are the two that you wrote; the backward pass has sums, too",
        3 / 4: "each half of the layer has its own sum on the way back",
        3
        / 2: "q, k and v are one product here, and so are the MLP's hidden features: one sum for each half on the way back",
        2: "the gradients of the weights need none: each device has all that its own part takes",
        4: "that is all four layers; one is asked",
    },
)
apart = Prediction(
    "",
    {},
    own={
        "units": {
            8 / 12: "x meets three cut weights now, and each of them brings a sum",
            16 / 12: "the forward pass is as before, and so is the MLP's way back",
            24 / 12: "three times as much would be the attention's way back alone",
            10 / 12: "three sums in the place of one are two more, each of 2 units",
        },
        "all-reduces": {
            2: "each layer has six sums now; XLA puts sums that are ready together into one all-reduce of several arrays",
            24
            / 16: "each layer has six sums now; XLA puts sums that are ready together into one all-reduce of several arrays",
        },
    },
)
unchecked = Choice(
    {
        "right": "count the losses: with the check off there are eight of them, one a device",
        "8 times": "",
        "neither": "the psum does come on the way back, as the transpose of the psum: it is only the losses that are too many",
    }
)
lowest_loss = Choice(
    {
        "wrong": "",
        "whole": "nobody fits the sum of the eight small models: each is fitted to the targets alone",
        "right": "so one would hope; each of the eight small models fits the targets by itself, and the program says how well",
    }
)
cut_between = Choice(
    {
        "less": "an all-gather and a reduce-scatter are the two halves of one all-reduce, (n - 1)/n each",
        "the same": "",
        "more": "an all-gather and a reduce-scatter are the two halves of one all-reduce, (n - 1)/n each",
    }
)
again = Prediction(
    "units",
    {},
    own={
        "tensor": {
            12 / 10: "both sums would come again if both were needed: who needs the result of the layer's last one?",
            8 / 10: "what is computed again contains a psum",
            9 / 10: "an all-reduce is 2 units",
        },
        "sequence": {
            12 / 11: "both halves would come again in full: who needs the layer's last reduce-scatter?",
            10 / 11: "each half's all-gather comes again, and one of the two reduce-scatters",
            8 / 11: "what is computed again contains all-gathers",
        },
        "gather again": {
            11 / 10: "the policy keeps what a reduce-scatter gives",
            8 / 10: "the policy keeps all but what an all-gather gives: that comes again, 1 unit for each half",
            9 / 10: "each of the two halves has an all-gather",
            12 / 10: "one all-gather for each half comes again, 1 unit each",
        },
    },
)
for_the_pod = Choice(
    {
        "less": "it starts from the same layout, and does not find the program that you wrote",
        "the same": "it starts from the same layout, and does not find the program that you wrote",
        "more": "",
    }
)
waits_first = Choice(
    {
        "attention": "",
        "MLP": "both halves send the same; which of them has more products to hide it behind?",
        "neither": "both halves send the same; do both compute the same?",
    }
)


def _quickly(lowered):
    """Compile a program that runs once: on the CPU most of the time goes into making it fast."""
    cpu = jax.devices()[0].platform == "cpu"
    return lowered.compile({"xla_backend_optimization_level": 0} if cpu else None)


def _case(width, features):
    """q, k and v as numbers that tell which array, which row, which column they are from."""
    rows, columns = np.arange(width)[:, None], np.arange(features)
    return [(1000.0 * (which + 1) + 50 * columns + rows) / 8 for which in range(3)]


def _named(columns):
    """The columns of the one matrix, as "q0 q1 k0": which each is, or "?"."""
    said = []
    for column in columns.T:
        which, rest = divmod(round(8 * float(column[0])), 1000)
        real = np.allclose(8 * column, 1000 * which + rest + np.arange(len(column))) and rest % 50 == 0
        said.append(f"{'qkv'[which - 1]}{rest // 50}" if real and 1 <= which <= 3 else "?")
    return said


def _judge_one_matrix(answer):
    for width, features, n in ((5, 6, 3), (7, 20, 5)):
        q, k, v = _case(width, features)
        got, said = answer(q, k, v, n), f"Of three ({width}, {features}) matrices and n = {n} you return"
        if isinstance(got, (list, tuple)):
            raise Wrong(f"{said} a {type(got).__name__} of {len(got)}; expected one matrix, its pieces side by side.")
        if not (hasattr(got, "shape") and hasattr(got, "dtype")):
            raise Wrong(f"{said} {shown(got)}; expected an array of shape ({width}, {3 * features}).")
        if got.shape != (width, 3 * features):
            axes = "" if len(got.shape) == 2 else " Its pieces stand side by side, along the columns."
            raise Wrong(f"{said} an array of shape {got.shape}; expected ({width}, {3 * features}).{axes}")
        names, part = _named(np.asarray(got, np.float64)), features // n
        for piece in range(n):
            own = range(piece * part, (piece + 1) * part)
            want = [f"{matrix}{column}" for matrix in "qkv" for column in own]
            has = names[3 * part * piece : 3 * part * (piece + 1)]
            if has != want:
                held = f"Cut in {n}, piece {piece} of your columns holds {' '.join(has)}"
                if "?" in has:
                    raise Wrong(f"{held}: a ? is no column of q, k or v. Are rows mixed, or values changed?")
                if sorted(has) == sorted(want):
                    raise Wrong(f"{held}: the right columns, in another order than {' '.join(want)}.")
                kinds = {name[0] for name in has}
                clue = "Each piece needs its own columns of all three."
                if len(kinds) == 3:
                    columns = sorted({int(name[1:]) for name in has})
                    clue = f"It needs columns {own[0]} to {own[-1]} of each."
                    if len(columns) == part and columns == list(range(piece, features, n)):
                        clue += " You give every n-th column; device i has a run of neighbours, whole heads."
                raise Wrong(f"{held}. {clue}")


@exercise(
    _judge_one_matrix,
    "Cut each of the three in n pieces along its columns. Then put piece 0 of q, of k and of v side by side, then piece 1 of each, and so on.",
)
def one_matrix(q, k, v, n):
    """Three (width, features) -> (width, 3 * features): n pieces of q, k, v each."""
    pieces = [jnp.split(matrix, n, axis=1) for matrix in (q, k, v)]
    return jnp.concatenate([three[i] for i in range(n) for three in pieces], axis=1)


KEY_CASES = ((8, 4, 2), (12, 4, 6), (24, 3, 8), (32, 2, 8), (18, 6, 9), (32, 16, 4))  # heads, key heads, devices


def _key_slips(device, heads, key_heads, n):
    mine = range(device * heads // n, (device + 1) * heads // n)
    group = heads // key_heads
    even = range(device * key_heads // n, (device + 1) * key_heads // n)
    return {
        "": {head // group for head in mine},
        "all of them: a device needs those of its own query heads": set(range(key_heads)),
        "an even share of the key heads, which leaves a device without any where there are fewer than devices": set(
            even
        ),
        "those of `head % key_heads`: neighbours share a key head here, in groups of heads / key_heads": {
            head % key_heads for head in mine
        },
        "the numbers of its query heads: several of them share one key head": set(mine),
        "those of every n-th query head: a device has a run of neighbours": {
            head // group for head in range(device, heads, n)
        },
        "`head // key_heads`: a group has heads / key_heads heads": {head // key_heads for head in mine},
        "that of its first query head: does the last one belong to the same group?": {mine[0] // group},
        "those of its first and last query heads: those between them need theirs, too": {
            mine[0] // group,
            mine[-1] // group,
        },
        "those of one query head too many: the last of the run is the next device's": {
            head // group for head in (*mine, mine[-1] + 1)
        },
        "numbers from 1: the first key head is 0": {head // group + 1 for head in mine},
        "that of `device % key_heads`: which query heads does the device have?": {device % key_heads},
    }


def _judge_key_heads(answer):
    cases = [(device, *case) for case in KEY_CASES for device in range(case[2])]
    said, slips = [], [_key_slips(*case) for case in cases]
    for case in cases:
        got = answer(*case)
        listed = sorted(got) if isinstance(got, (set, frozenset)) else got
        try:
            flat = [number(one, whole=True) for one in list(listed)]
        except (TypeError, Wrong):
            device, heads, keys, n = case
            raise Wrong(
                f"For device {device} of {n}, {heads} heads and {keys} key heads you return {shown(got)}; expected a list of whole numbers."
            ) from None
        said.append(flat)
    for case, flat, slip in zip(cases, said, slips, strict=True):
        if sorted(flat) == sorted(slip[""]):
            continue
        device, heads, keys, n = case
        start = f"Of {heads} heads and {keys} key heads on {n} devices, device {device}"
        if set(flat) == slip[""]:
            raise Wrong(f"{start} gets {flat}: each key head is listed once, however many query heads share it.")
        every = [words for words in slip if words and all(set(f) == s[words] for f, s in zip(said, slips, strict=True))]
        if every:
            raise Wrong(ended(f"{start} gets {flat}. You give {every[0]}"))
        first, last = device * heads // n, (device + 1) * heads // n - 1
        raise Wrong(
            f"{start} gets {flat}. It has the query heads {first} to {last}: which key head does each of them use?"
        )


@exercise(
    _judge_key_heads,
    "Device i has the query heads from i * heads / n on. Query head h uses key head h // (heads / key_heads).",
)
def needed_key_heads(device, heads, key_heads, n):
    """The numbers of the key heads that a device needs, each once."""
    mine = range(device * heads // n, (device + 1) * heads // n)
    return sorted({head * key_heads // heads for head in mine})


def _halves():
    """A norm and two halves that are quick to compile, and their weights: each device has two of 16 features."""
    rng = np.random.default_rng(3)
    w = {
        name: (rng.integers(1, 9, (16, 6)) * rng.choice([-0.125, 0.125], (16, 6))).astype(np.float32)
        for name in ("heads", "out", "up", "down")
    }
    x = (rng.integers(1, 9, (3, 6)) * rng.choice([-0.25, 0.25], (3, 6))).astype(np.float32)

    def norm(x):
        return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 0.5)

    def attention(x, w):
        return (x @ w["heads"].T) ** 2 @ w["out"]

    def mlp(x, w):
        return (x @ w["up"].T) ** 3 @ w["down"]

    return x, w, norm, attention, mlp


def _layer_slips(x, w, norm, attention, mlp):
    """By words, what each device would hold."""
    one = functools.partial(attention, w=w)
    two = functools.partial(mlp, w=w)
    first = x + one(norm(x))
    apart = [{name: part[2 * d : 2 * d + 2] for name, part in w.items()} for d in range(8)]
    return {
        "": first + two(norm(x)),
        "x once for each device: what you add up along `model` has x in it": 8 * x + one(norm(x)) + two(norm(x)),
        "that of the page's layer: there the second half reads the result of the first": first + two(norm(first)),
        "that of halves which read x itself, without the norm": x + one(x) + two(x),
        "with an MLP that reads x itself, without the norm": first + two(x),
        "with an attention that reads x itself, without the norm": x + one(x) + two(norm(x)),
        "with the norm of what the halves give: it is taken of what they read": x + norm(one(x) + two(x)),
        "without x: the halves' results are to be added to it": one(norm(x)) + two(norm(x)),
        "that of a mean over the devices: a product is a sum over features": x + (one(norm(x)) + two(norm(x))) / 8,
        "without the MLP": first,
        "without the attention": x + two(norm(x)),
        "norm(x) plus the halves: they are to be added to x itself": norm(x) + one(norm(x)) + two(norm(x)),
        "that of halves one behind the other, mlp of attention": x + two(one(norm(x))),
        "that of halves one behind the other, on each device: here both read norm(x)": x
        + sum(mlp(attention(norm(x), own), own) for own in apart),
        "8 times the halves' results: they are added up along `model` twice": x + 8 * (one(norm(x)) + two(norm(x))),
        "8 times the attention's result, which is added up along `model` twice": x + 8 * one(norm(x)) + two(norm(x)),
        "8 times the MLP's result, which is added up along `model` twice": x + one(norm(x)) + 8 * two(norm(x)),
    }


@functools.cache
def _layer_truth():
    """What the slips give, by words, and the right gradient by x of the sum of squares."""
    x, *rest = _halves()
    slips = {words: np.asarray(value) for words, value in _layer_slips(x, *rest).items()}
    return slips, np.asarray(jax.grad(lambda x: (_layer_slips(x, *rest)[""] ** 2).sum())(x))


def _judge_parallel_layer(answer):
    x, w, norm, attention, mlp = _halves()
    mesh = make_mesh((8,), ("model",))

    def program(x, w, back):
        def layer(x):
            got = answer(x, w, norm, attention, mlp)
            if not isinstance(got, jax.Array):
                raise Wrong(f"Your function returns {shown(got)}; expected an array of shape {x.shape}.")
            if got.shape != x.shape:
                raise Wrong(f"On each device your function returns an array of shape {got.shape}; expected {x.shape}.")
            if "V:" in type_text(got):
                raise Wrong(
                    f"Your result is typed {type_text(got)}, one of each device's own. If nothing adds up the eight partial "
                    "results, that is what they are; x itself has to stay shared, and only what the halves read varies."
                )
            return (got * got).sum(), got

        if back:
            return jax.grad(layer, has_aux=True)(x)
        return layer(x)[1]

    def compiled(back):
        outs = (P(), P()) if back else P()
        mapped = jax.shard_map(
            functools.partial(program, back=back), mesh=mesh, in_specs=(P(), P("model")), out_specs=outs
        )
        return _quickly(jax.jit(mapped).lower(x, w))

    whole = compiled(True)
    gradient, got = map(np.asarray, whole(x, w))
    slips, want = _layer_truth()
    if not np.allclose(got, slips[""], rtol=1e-4, atol=1e-4):
        words = explained(got, [(value, words) for words, value in slips.items() if words])
        if words:
            raise Wrong(f"Your result is {words}.")
        same(got, slips[""], "Your result")
    if not np.allclose(gradient, want, rtol=1e-4, atol=1e-5 * float(abs(want).max())):
        times = np.median(gradient / want)
        raise Wrong(
            f"Right values, and the gradient by x is {times:.3g} times the right one (in the middle of its numbers): what "
            "is added up on the way back?"
        )
    one = 2 * 7 / 8 * x.nbytes
    sent = cost(whole).bytes_sent / one
    if sent > 2.01:
        forward = cost(compiled(False)).bytes_sent / one
        back = sent - forward
        where = []
        if forward > 1.01:
            where.append("forward: add up before you sum, not after")
        if back > 1.01:
            where.append(
                "on the way back there is one sum for each place where a shared value becomes the devices' own"
            )
        raise Wrong(
            f"Right values. Forward a device sends {forward:.3g} times the bytes of one all-reduce of x, and {back:.3g} times "
            f"on the way back; once and once are asked. {'; '.join(where).capitalize()}."
        )


@exercise(
    _judge_parallel_layer,
    "Both halves read one and the same value: make that one varying, once, before they read it. Both partial results can be "
    "added on the device before anything is summed over the devices.",
)
def parallel_layer(x, w, norm, attention, mlp):
    """Per device: shared x (..., width), its parts w -> x + both halves, shared."""
    own = varying(norm(x), "model")
    return x + jax.lax.psum(attention(own, w) + mlp(own, w), "model")


TOKENS, WORDS = 6, 40


def _logits(scale):
    rng = np.random.default_rng(11)
    logits = (rng.integers(-12, 13, (TOKENS, WORDS)) / 4 * scale).astype(np.float32)
    return logits, np.array([7, 39, 12, 0, 26, 18])


def _log_sum(values, axis=-1):
    top = values.max(axis, keepdims=True)
    return (top + np.log(np.exp(values - top).sum(axis, keepdims=True))).squeeze(axis)


def _loss_slips(logits, targets):
    logits = logits.astype(np.float64)
    tokens, own = np.arange(TOKENS), logits.reshape(TOKENS, 8, -1)
    total, hit = _log_sum(logits), logits[tokens, targets]
    clipped = own[tokens, :, np.minimum(targets, own.shape[2] - 1)].sum(1)
    around = own[tokens, :, targets % own.shape[2]].sum(1)
    parts = _log_sum(own)
    each = (total[:, None] - own[tokens, :, targets % own.shape[2]]).sum(1)
    unmoved = np.where(targets < own.shape[2], clipped, 0)
    tops = own.max(2)
    scales = np.log(np.exp(own - tops[:, :, None]).sum((1, 2)))
    mixed = "with the exponentials of each device taken from its own largest logit: they can be added up where all take out the same"
    holder = tops[tokens, targets // own.shape[2]]
    return {
        "": (total - hit).mean(),
        "the right one with its sign turned": (hit - total).mean(),
        "the sum over the tokens, not their mean": (total - hit).sum(),
        "too large by the target's logit: is it taken away, or is it 0 on every device?": total.mean(),
        "with a target's logit from every device: targets are numbers in the whole vocabulary, and a device's part begins at "
        "axis_index times its width. Where a target is another device's, its share is 0": (total - clipped).mean(),
        "with a target's logit from every device, at `targets % width`: where a target is another device's, its share is "
        "0": (total - around).mean(),
        "with an eighth of the target's logit: one device has it, the others 0, so add it up": (total - hit / 8).mean(),
        "with the logarithms of the devices' own sums added up: add up the exponentials, then take the logarithm": (
            parts.sum(1) - hit
        ).mean(),
        "with the mean of the devices' own log-sum-exps: add up the exponentials, then take the logarithm": (
            parts.mean(1) - hit
        ).mean(),
        "with the largest of the devices' own log-sum-exps: add up the exponentials, then take the logarithm": (
            parts.max(1) - hit
        ).mean(),
        "too small by log 8: the exponentials are averaged over the devices, and are to be added up": (
            total - np.log(8) - hit
        ).mean(),
        "without the largest logit, which was taken out of the exponentials and has to come back": (
            total - logits.max(1) - hit
        ).mean(),
        "with the largest logit of all tokens taken out, and a token's own put back": (
            total - logits.max() + logits.max(1) - hit
        ).mean(),
        "8 times too large: it is shared already, and added up once more": 8 * (total - hit).mean(),
        "that of eight devices' own losses added up": each.mean(),
        "the mean of eight losses, each over a device's own words: the sum of exponentials is over all words": (
            parts.mean(1) - hit / 8
        ).mean(),
        "with the target looked up at its number in the whole vocabulary: a device's part begins at axis_index times its "
        "width": (total - unmoved).mean(),
        "with the larger of the target's logit and the 0 of the other devices: add up, do not compare": (
            total - np.maximum(hit, 0)
        ).mean(),
        mixed: (scales - (hit - holder)).mean(),
        f"{mixed}.": (scales + tops[:, 0] - hit).mean(),
    }


def _judge_vocabulary_loss(answer):
    mesh = make_mesh((8,), ("model",))

    def loss(logits, targets):
        got = answer(logits, targets)
        if not hasattr(got, "shape") or not hasattr(got, "dtype"):
            raise Wrong(f"Your function returns {shown(got)}; expected one number, an array of shape ().")
        if got.shape != ():
            more = " Take the mean over the tokens." if got.shape == (TOKENS,) else ""
            raise Wrong(f"Your function returns an array of shape {got.shape}; expected (), one loss.{more}")
        if "V:" in type_text(got):
            raise Wrong(
                f"Your loss is typed {type_text(got)}: each device has a loss of its own. Which of its parts is not yet "
                "added up, or compared, along `model`?"
            )
        return got

    program = jax.shard_map(
        jax.value_and_grad(loss), mesh=mesh, in_specs=(P(None, "model"), P()), out_specs=(P(), P(None, "model"))
    )
    logits, targets = _logits(1)
    try:
        compiled = _quickly(jax.jit(program).lower(logits, targets))
    except Wrong as wrong:
        if found := re.search(r"Differentiation rule for '(\w+)' not implemented", str(wrong)):
            _no_rule(found[1])
        raise
    except NotImplementedError as error:
        if found := re.search(r"Differentiation rule for '(\w+)' not implemented", str(error)):
            _no_rule(found[1])
        raise
    value, gradient = map(np.asarray, compiled(logits, targets))
    slips = _loss_slips(logits, targets)
    if not np.isclose(value, slips[""], rtol=1e-4):
        if np.isnan(value):
            raise Wrong(
                "Your loss is nan. A target that is another device's lies outside of this device's logits: take a place "
                "that is inside, and count it as 0."
            )
        moved = _loss_slips(logits - logits.max(1, keepdims=True), targets)  # of a loss that subtracts first
        named = [(wrong, words) for each in (slips, moved) for words, wrong in each.items() if words]
        words = explained(value, [(wrong, words) for wrong, words in named if not np.isclose(wrong, slips[""])])
        if words:
            raise Wrong(ended(f"Your loss is {value:.5g}, expected {slips['']:.5g}: {words}"))
        raise Wrong(
            f"Your loss is {value:.5g}, expected {slips['']:.5g}: the mean of log(sum(exp(logits))) - logits[target]."
        )
    large, _ = _logits(400)
    large[2] -= 3000  # another token's largest logit is far away
    value, _ = map(np.asarray, compiled(large, targets))
    want = _loss_slips(large, targets)[""]
    if not np.isclose(value, want, rtol=1e-4):
        raise Wrong(
            f"Right for small logits. With logits from -4,200 to 1,200 your loss is {value:.5g}, expected {want:.5g}: exp of "
            "them has no place in float32. Take the largest logit out first, of each token, over all devices."
        )
    chosen = np.eye(WORDS)[targets]
    right = (np.exp(logits - _log_sum(logits)[:, None]) - chosen) / TOKENS
    if not np.allclose(gradient, right, rtol=1e-3, atol=1e-5):
        raise Wrong("Right values, and the gradient by the logits is wrong: what stops it, or what is added up twice?")
    sent = cost(compiled).bytes_sent / (4 * TOKENS)
    if sent > 30:
        raise Wrong(
            f"Right values, and a device sends {sent:.3g} numbers for each token; at most 30 are asked. Which collective carries "
            "logits? Each token needs its largest logit, its sum, and its target's logit."
        )


def _no_rule(name):
    raise Wrong(
        f"Your loss cannot be differentiated: JAX has no derivative for {name}. Does the loss depend on the number that you "
        "take out? jax.lax.stop_gradient, before the pmax, says that none is needed."
    )


@exercise(
    _judge_vocabulary_loss,
    "Three numbers a token, each brought together along `model`: the largest logit (pmax, of a jax.lax.stop_gradient), the sum "
    "of exp(logits - largest), the target's logit, which is 0 on all devices but one.",
)
def vocabulary_loss(logits, targets):
    """Per device: logits (tokens, words / 8), shared targets (tokens,) -> mean loss."""
    top = jax.lax.pmax(jax.lax.stop_gradient(logits.max(1)), "model")
    total = jax.lax.psum(jnp.exp(logits - top[:, None]).sum(1), "model")
    place = targets - jax.lax.axis_index("model") * logits.shape[1]
    mine = jax.nn.one_hot(place, logits.shape[1])  # all 0 for another device's
    hit = jax.lax.psum((mine * logits).sum(1), "model")
    return (top + jnp.log(total) - hit).mean()


def _judge_most_chips(answer):
    cases = ((8192, 1970.0), (28672, 2295.0))
    said = [number(answer(*case), "one number, of chips", positive=True) for case in cases]
    whole = "rounded to a whole number: n need not be whole"
    slips = [
        ([1 + ratio * 1.5 / hidden for hidden, ratio in cases], "hidden and ratio have changed places in the fraction"),
        (
            [(1 + 1.5 * hidden) / ratio for hidden, ratio in cases],
            "the 1 is divided by ratio, too: set the brackets anew",
        ),
        ([1.5 * (1 + hidden / ratio) for hidden, ratio in cases], "the 1 is multiplied, too: set the brackets anew"),
        (
            [1.5 * hidden / ratio - 1 for hidden, ratio in cases],
            "n - 1 is 1.5 hidden / ratio: the 1 goes to the other side",
        ),
        *(
            ([float(by(1 + 1.5 * hidden / ratio)) for hidden, ratio in cases], whole)
            for by in (np.floor, np.ceil, np.round)
        ),
    ]
    slip = explained(said, slips, 1e-6)
    for (hidden, ratio), got in zip(cases, said, strict=True):
        if slip:
            raise Wrong(
                f"For {amount(hidden)} hidden features and {amount(ratio)} FLOPs a byte you say {amount(got)} chips: {slip}."
            )

        def chips(products, sums, size, ways, flops, own, h=hidden, r=ratio):
            return own + products * flops * h / (sums * size * ways * r)

        by_factors(
            got,
            f"For {amount(hidden)} hidden features and {amount(ratio)} FLOPs a byte ",
            "chips",
            chips,
            {"products": 6.0, "sums": 2.0, "size": 2.0, "ways": 2.0, "flops": 2.0, "own": 1.0},
            {
                "products": [
                    (2.0, "that is with the two products of the forward pass; the backward pass has four more"),
                    (
                        4.0,
                        "the backward pass has two products for each one of the forward pass: one by the input, one by the weight",
                    ),
                ],
                "sums": [
                    (1.0, "there is one all-reduce forward, and one on the way back"),
                    (
                        4.0,
                        "the MLP has one all-reduce forward, and one on the way back; the other two are the attention's",
                    ),
                ],
                "size": [(4.0, "a bfloat16 has 2 bytes")],
                "ways": [(1.0, "an all-reduce sends its operand nearly twice, 2 (n - 1)/n")],
                "flops": [(1.0, "a multiply-and-add counts as 2 FLOPs")],
                "own": [(0.0, "the factor (n - 1)/n is taken for 1: keep it, and n - 1 stands where you have n")],
            },
            "set the seconds of the six products equal to those of the two all-reduces, and solve for n",
        )


@exercise(
    _judge_most_chips,
    "Per token: FLOPs of six products over n chips, 6 * 2 * width * hidden / n; bytes of two all-reduces, 2 * 2 (n - 1)/n * 2 * "
    "width. FLOPs / bytes = ratio where they take equally long.",
)
def most_chips(hidden, ratio):
    """The n at which an MLP's sends and products, both ways, take equally long."""
    return 1 + 6 * 2 * hidden / (2 * 2 * 2 * ratio)
