"""Exercises and predictions of notebook 10, Cut the weights: fully sharded training."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from utils.compat import type_text
from utils.count.cost import cost
from utils.exercises import Choice, Prediction, Wrong, amount, by_factors, exercise, explained, number, shown
from utils.exercises.prediction import ended
from utils.mesh import make_mesh

_MASTER = "the float32 copy of the weights belongs to the optimizer's 12 bytes"
_LATER = "the later stages' parts are still whole"
stages = Prediction(
    "bytes",
    {16: "that is the bytes of one parameter on all eight together, or nothing was divided"},
    {  # by hand: 2 + 2 + 12/8, 2 + 2/8 + 12/8, 16/8
        "stage 1": {
            2 / 5.5: f"{_LATER}: weights and gradients, 2 bytes each",
            4 / 5.5: "4 bytes are still whole, and of the 12 an eighth is left: 1.5",
            9 / 5.5: _MASTER,
            1.5 / 5.5: f"{_LATER}: weights and gradients, 2 bytes each",
            3.5 / 5.5: "weights are whole, 2 bytes, and gradients are as well",
        },
        "stage 2": {
            2 / 3.75: f"{_LATER}: the weights, 2 bytes",
            1.75 / 3.75: f"{_LATER}: the weights, 2 bytes",
            5.5 / 3.75: "that is stage 1; now the gradients are cut, too",
            14.25 / 3.75: "each stage keeps the cuts of those before",
        },
        "stage 3": {
            14.25 / 2: "each stage keeps the cuts of those before",
            3.75 / 2: "that is stage 2; now the weights are cut, too",
            1.75 / 2: "all 16 bytes are cut in eight",
        },
    },
)
_GRADS = "the gradients of all devices have to be added up as well"
_SCATTER = "each device needs the sum of its own piece alone: a reduce-scatter, one round"
rounds = Prediction(
    "rounds",
    {},
    {
        "before": {1 / 2: _GRADS, 3 / 2: _SCATTER},
        "inside": {
            1 / 2: _GRADS,
            3
            / 2: "the gathered weights need not come again for the backward pass; the next section looks where they were",
            2: "eight layers of an eighth each are one round, forward",
            4: "eight layers of an eighth each are one round, forward",
            8: "eight layers of an eighth each are one round, forward",
        },
        "again": {
            2 / 3: "`checkpoint` computes the layer again, and to gather is part of it",
            4 / 3: f"two gathers and one sum; {_SCATTER}",
        },
    },
)
_PILE = "a layer's weights are an eighth, but the backward pass needs those of all eight layers: who keeps them?"
held_inside = Prediction(
    "of all weights",
    {
        0.125 / 1.3: _PILE,
        0.25 / 1.3: _PILE,
        0.3 / 1.3: _PILE,
        0.4 / 1.3: _PILE,
        0.5 / 1.3: _PILE,
        2.5 / 1.3: "that is `before`; here the gradients need not stand whole all at once",
        1 / 1.3: "the weights of all layers pile up, 1; there is working space for one layer beside them",
    },
    within=0.1,
)
work_again = Prediction(
    "times",
    {
        8 / 7: "8/6 would compute both products of a layer again; one of the results is used by nobody",
        6 / 7: "`checkpoint` computes a part of the forward pass again",
        9 / 7: "the forward pass is a third of the work, and not all of it comes again",
        12 / 7: "the forward pass is a third of the work, and not all of it comes again",
    },
)
named = Prediction(
    "rounds",
    {
        3 / 2: "what has the name is not kept, and what it was given for is: the result of the gather itself",
        1 / 2: "a gather is one round, and the gradients' reduce-scatter is another",
    },
)
loss_tells = Choice(
    {"yes": "", "no": ""},
    own={
        "sum": {"yes": "Adam divides by the root of the squares, which are too large, too"},
        "pmean": {"no": "each device moves its weights by the gradient of others, which is another step altogether"},
    },
)
factors = Prediction(
    "",
    {},
    {
        "means": {1 / 8: "the moments keep the gradient's size; the step is what divides it away"},
        "squares": {1 / 8: "they are of the squares: 8 times 8", 1 / 64: "the moments keep the gradient's size"},
        "rounds added": {
            8: "an all-reduce of all gradients is 2 rounds; here each device puts in a piece, an eighth",
            4: "a device puts in its piece alone, an eighth",
            1 / 2: "an all-reduce sends twice (n - 1)/n",
        },
    },
)
pod_rounds = Choice(
    {"fewer": "", "as many": "", "more": ""},
    own={
        "1024 tokens": {
            "as many": "the layout says where the weights lie, not how they travel: the compiler chose another way",
            "fewer": "with so many tokens activations are larger than weights, so weights travel, and by a longer way",
        },
        "256 tokens": {
            "as many": "the layout says where the weights lie, not how they travel: here activations are small enough to go",
            "more": "with few tokens the compiler may send activations in place of weights",
        },
    },
)
hidden_at = Prediction(
    "tokens",
    {
        1.5 * 7 / 6 * 4 / 3: "a bfloat16 takes 2 bytes, and `again` computes 7 FLOPs instead of 6",
        14 / 9: "that is data parallelism; here 3 rounds of 2 bytes stand against 7 FLOPs",
        7 / 3: "a bfloat16 takes 2 bytes",
        2: "a bfloat16 takes 2 bytes",
        7 / 6: "`again` computes 7 FLOPs for each parameter and token, not 6",
        7 / 8: "of a layer's two products one is computed again: 7 FLOPs, not 8",
        2 / 3: "`again` sends three rounds",
        8 / 7: "a round is (n - 1)/n of all weights",
    },
    within=0.02,
)


# --- 10.1


def _zero(numbers, n, stage, sizes=(12, 2, 2), cumulative=True):
    """Bytes at rest; `sizes`: optimizer, gradients, weights, cut at stages 1, 2, 3."""
    cut = [stage >= at if cumulative else stage == at for at in (1, 2, 3)]
    return numbers * sum(size / n if is_cut else size for size, is_cut in zip(sizes, cut, strict=True))


ZERO_SLIPS = [
    (lambda N, n, s: _zero(N, n, 3 if s == 2 else s), "at stage 2 the weights are still whole, 2 bytes"),
    (lambda N, n, s: _zero(N, n, s + bool(s)), "a stage too early; stage 1 cuts the optimizer alone, stage 2 not yet the weights"),
    (lambda N, n, s: _zero(N, n, max(0, s - 1)), "a stage too late; stage 1 cuts the optimizer already"),
    (lambda N, n, s: 16 * N / n if s else 16 * N, "you divide all 16 bytes from stage 1 on; each stage cuts one part more"),
    (lambda N, n, s: 16 * N / n, "you divide all 16 bytes at every stage; each stage cuts one part more, and stage 0 none"),
    (lambda N, n, s: _zero(N, n, s, (8, 4, 4)), "weights and gradients are bfloat16, 2 bytes each; the float32 copy is the optimizer's"),
    (lambda N, n, s: _zero(N, n, s, (8, 2, 4)), "the weights are there twice: in bfloat16, 2 bytes, and as the optimizer's float32 copy, 4 bytes, cut at stage 1"),
    (lambda N, n, s: _zero(N, n, s, (8, 2, 2)), "the float32 copy of the weights is missing: 4 bytes more, cut with the moments"),
    (lambda N, n, s: _zero(N, n, s, (4, 2, 2)), "of the optimizer's three numbers you count one: a copy and two moments are 12 bytes"),
    (lambda N, n, s: _zero(N, n, s, (12, 4, 2)), "a gradient is bfloat16, 2 bytes"),
    (lambda N, n, s: _zero(N, n, s, (12, 0, 2)), "the gradients are missing"),
    (lambda N, n, s: _zero(N, n, s, cumulative=False), "each stage cuts its own part alone; it keeps the cuts of those before"),
    (lambda N, n, s: _zero(N, n, 4 - s if s else 0, cumulative=False), "the order is another: first the optimizer, then gradients, then weights"),
    (lambda N, n, s: _zero(N, n, s, (2, 2, 12)), "the order is another: first the optimizer, then gradients, then weights"),
    (lambda N, n, s: _zero(N, n, s) * n, "that is what all chips hold together"),
    (lambda N, n, s: _zero(N, n, s) / 1e9, "that is in GB; bytes are asked"),
    (lambda N, n, s: _zero(N, n, s) / 2**30, "that is in GiB; bytes are asked"),
    (lambda N, n, s: _zero(N, n, s) / N, "that is for one parameter"),
    (lambda N, n, s: _zero(N, n, s) * 8, "that is in bits"),
    (lambda N, n, s: _zero(N, n, s + 1), "a stage too early; stage 0 cuts nothing"),
    (lambda N, n, s: _zero(N, n, min(s, 2)), "at stage 3 the weights are cut, too"),
    (lambda N, n, s: _zero(N, 8, s), "you divide by 8; n is the number of chips"),
    (lambda N, n, s: _zero(N, 64, s), "you divide by 64; n is the number of chips"),
    (lambda N, n, s: N * sum(b // n if s >= at else b for b, at in ((12, 1), (2, 2), (2, 3))), "`//` leaves out the fraction: a part of a byte for each parameter is meant"),
    (lambda N, n, s: round(_zero(N, n, s) / 1e9, 1) * 1e9, "that is rounded, as the paper prints it; the bytes are asked"),
]  # fmt: skip


def _judge_zero_memory(answer):
    cases = [(N, n, stage) for N, n in ((7.5e9, 64), (1.3e9, 8), (70e9, 24)) for stage in range(4)]
    said = []
    for N, n, stage in cases:
        words = f"{N:g} parameters, {n} chips, stage {stage}: you return"
        said.append(number(answer(N, n, stage), "one number, of bytes", said=words))
    slips = [([slip(*case) for case in cases], words) for slip, words in ZERO_SLIPS]
    words = explained(said, slips, 1e-6)
    for case, got in zip(cases, said, strict=True):
        if not np.isclose(got, want := _zero(*case), rtol=1e-6, atol=0):
            N, n, stage = case
            begins = f"{N:g} parameters, {n} chips, stage {stage}: you say {amount(got)} bytes, expected {amount(want)}"
            asked = "which of the three parts is cut at this stage, and what is still whole?"
            raise Wrong(ended(f"{begins}: {words or asked}"))


@exercise(
    _judge_zero_memory,
    "Three parts: weights 2, gradients 2, optimizer 12. At a stage that cuts it a part is divided by n, else not; add them up.",
)
def zero_memory(numbers, n, stage):
    """Return the bytes that each of n chips holds at rest, at a stage from 0 to 3."""
    optimizer = 12 / n if stage >= 1 else 12
    gradients = 2 / n if stage >= 2 else 2
    weights = 2 / n if stage >= 3 else 2
    return numbers * (optimizer + gradients + weights)


# --- 10.2

DEPTH, WIDTH, HIDDEN = 6, 24, 40
GATED = {"a": (DEPTH, WIDTH, HIDDEN), "b": (DEPTH, WIDTH, HIDDEN), "c": (DEPTH, HIDDEN, WIDTH)}
NUMBERS = DEPTH * WIDTH * HIDDEN
LAST = P(None, None, "data")


def _gated(params, x, y):
    """The loss on one device, from whole weights."""

    def layer(x, w):
        return x + (jnp.tanh(x @ w["a"]) * (x @ w["b"])) @ w["c"], None

    return ((jax.lax.scan(layer, x, params)[0] - y) ** 2).mean()


def _by_numpy(params, x, y, act=np.tanh, gate=np.multiply, keep=1, error=np.square, first="a", second="b"):
    """The loss of whole weights, or of one that is changed in a place."""
    for a, b, c in zip(params[first], params[second], params["c"], strict=True):
        x = keep * x + gate(act(x @ a), x @ b) @ c
    return float(error(x - y).mean())


@functools.cache
def _gated_case(n):
    """Weights, x and y of five rows a device, in float32; the right loss, and those of known slips."""
    rng = np.random.default_rng(n)
    params = {name: np.float32(0.8 * rng.normal(size=s) / s[1] ** 0.5) for name, s in GATED.items()}
    x, y = (np.float32(rng.normal(size=(5 * n, WIDTH))) for _ in range(2))
    y *= np.float32(1 + np.arange(5 * n)[:, None] / (5 * n))  # the last device's loss is the largest

    def mixed(w):  # the pieces behind each other, read as rows
        return np.concatenate(np.split(w, n, -1), axis=1).reshape(w.shape)

    def loss(rows=slice(None), **changed):
        return _by_numpy(params, x[rows], y[rows], **changed)

    value = loss()
    ours = "the layer is x + (tanh(x @ a) * (x @ b)) @ c"
    slips = [
        (n * value, "psum adds up the means of the devices; the mean over all rows is their mean"),
        (value / n, "it is divided by the number of devices once too often"),
        (value * 5 * WIDTH * n, "it adds up the squares; their mean is asked"),
        (value * 5 * WIDTH, "it adds up a device's squares; their mean is asked"),
        (value * WIDTH, "the squares are averaged over rows, and added up along a row; the mean is over all"),
        (
            _by_numpy({k: mixed(w) for k, w in params.items()}, x, y),
            "the pieces are put together in another order than they were cut: columns belong side by side",
        ),
        (loss(slice(5)), "that is the loss of one device's rows"),
        (loss(first="b", second="a"), f"tanh is of the product with b; {ours}"),
        (loss(act=lambda h: h), f"there is no tanh; {ours}"),
        (loss(act=lambda h: np.maximum(h, 0)), f"that is relu for tanh; {ours}"),
        (loss(act=lambda h: 1 / (1 + np.exp(-h))), f"that is a sigmoid for tanh; {ours}"),
        (loss(gate=np.add), f"the two products are added; {ours}"),
        (loss(keep=0), f"the layer's input is not added to its result; {ours}"),
        (loss(error=np.abs), "it is of the absolute differences; their squares are asked"),
        (
            max(loss(slice(5 * i, 5 * i + 5)) for i in range(n)),
            "that is the largest of the devices' losses; the mean over all rows is asked",
        ),
    ]
    if n != 8:
        slips.append((n / 8 * value, f"you divide by 8; this mesh has {n} devices"))
    return params, x, y, value, slips


@functools.cache
def _gated_gradient(n):
    """The gradient of the loss on one device."""
    grads = jax.jit(jax.grad(_gated))(*_gated_case(n)[:3])
    return {name: np.asarray(g) for name, g in grads.items()}


def _checked(answer):
    """The reader's loss, Wrong unless it is one number, typed as shared."""

    def loss(params, x, y):
        got = answer(params, x, y)
        if got is None:
            raise Wrong("Your function returns None. Does it end with `return`?")
        if isinstance(got, (tuple, list)):
            raise Wrong(f"You return {len(got)} values; the loss alone is asked.")
        if not hasattr(got, "dtype") or got.shape != ():
            raise Wrong(f"On each device you return {_what(got)}; expected one number, an array of shape ().")
        if "{" in (found := type_text(got)):
            raise Wrong(
                f"Your loss has the type {found}: each device has its own. The loss over the rows of all devices is one "
                "number. What averages it over 'data', and types it as shared?"
            )
        return got

    return loss


def _gated_program(f, n, out_specs):
    """f on n devices, compiled, and what it is called with."""
    mesh, cut = make_mesh((n,), ("data",)), dict.fromkeys(GATED, LAST)
    specs = cut, P("data"), P("data")
    where = jax.tree.map(lambda spec: NamedSharding(mesh, spec), specs, is_leaf=lambda leaf: isinstance(leaf, P))
    args = jax.device_put(_gated_case(n)[:3], where)
    return _compiled(jax.jit(jax.shard_map(f, mesh=mesh, in_specs=specs, out_specs=out_specs)), args), args


def _refuse_value(value, n):
    """Wrong unless the loss on n devices is that of one, with the slip where it is a known one."""
    _, _, _, want, slips = _gated_case(n)
    value = float(value)
    if not np.isclose(value, want, rtol=1e-4):
        asked = "which weights does a layer multiply with, and over which rows is the mean?"
        words = explained(value, slips, 1e-3) or asked
        raise Wrong(ended(f"On {n} devices your loss is {amount(value)}; on one it is {amount(want)}: {words}"))


def _judge_gated_loss(answer):
    loss = _checked(answer)
    program, args = _gated_program(loss, 4, P())  # of the value alone: most slips are seen in it
    _refuse_value(program(*args), 4)
    cut = dict.fromkeys(GATED, LAST)
    program, args = _gated_program(jax.value_and_grad(loss), 8, (P(), cut))
    value, got = program(*args)
    _refuse_value(value, 8)
    for name, right in _gated_gradient(8).items():
        mine, size = np.asarray(got[name]), np.abs(right).max()
        if not np.allclose(mine, right, rtol=1e-3, atol=1e-4 * size):
            ratio = float(np.median(mine / right))
            same = np.allclose(mine, ratio * right, rtol=1e-2, atol=1e-3 * size)
            off = f"{ratio:.3g} times the right one" if same else "not that of one device"
            raise Wrong(
                f"Your loss is right, and its gradient by {name!r} on 8 devices is {off}. What stands between the pieces "
                "and the loss?"
            )
    _refuse_rounds(program, loss, args, 8)


def _refuse_rounds(program, loss, args, n):
    """Wrong unless a step sends three rounds, one layer at a time."""
    found = cost(program)
    one = (n - 1) / n * 4 * 3 * NUMBERS
    sent = sum(c.bytes_sent for c in found if c.kind != "all-reduce" or c.bytes_sent > 64) / one
    largest = max(c.bytes_sent / c.times / (2 if c.kind == "all-reduce" else 1) for c in found) / (one / DEPTH)
    begins = f"On {n} devices loss and gradient are right. A step of your loss sends {sent:.3g} rounds"
    if largest > 1.01:
        raise Wrong(
            f"{begins}, and one collective brings the weights of {largest:.3g} layers at once; each layer's come when its turn comes."
        )
    if sent < 2.99:
        raise Wrong(
            f"{begins}, not three: the whole weights of all layers are kept for the backward pass. {_why_kept(loss, args)}"
        )
    if sent > 3.01:
        kinds = {c.kind for c in found if c.bytes_sent > 64}
        why = "A gather is one round; a sum of pieces in zeros is two."
        if kinds == {"all-gather", "all-reduce"}:
            why = "The gradients are all-reduced, two rounds; what is gathered varies by its type, and then they are reduce-scattered."
        raise Wrong(f"{begins}, not three. {why}")
    if any(f"[{','.join(map(str, shape))}]" in program.as_text() for shape in GATED.values()):
        raise Wrong(
            f"{begins}. But in the backward pass a device holds the whole weights of all {DEPTH} layers at once. How much does "
            "jax.checkpoint compute again in one go: a layer, or all of them?"
        )


def _equations(jaxpr):
    """All equations of a jaxpr and of those in it."""
    for equation in jaxpr.eqns:
        yield equation
        for value in equation.params.values():
            if hasattr(inner := getattr(value, "jaxpr", value), "eqns"):
                yield from _equations(inner)


def _why_kept(loss, args):
    """What keeps the gathered weights, by where the gather stands in the jaxpr."""
    specs = dict.fromkeys(GATED, LAST), P("data"), P("data")
    mapped = jax.shard_map(loss, mesh=make_mesh((8,), ("data",)), in_specs=specs, out_specs=P())
    all_of_it = list(_equations(jax.make_jaxpr(mapped)(*args).jaxpr))
    again = [e for e in all_of_it if e.primitive.name in ("checkpoint", "remat", "remat2")]
    inside = [{i.primitive.name for i in _equations(e.params["jaxpr"])} for e in again]
    if not any("all_gather" in names for names in inside):
        return "Does the gather stand inside what is computed again?"
    if not any({"all_gather", "dot_general"} <= names for names in inside):
        return "The gather is computed again, and what needs its result is not; so that is kept. What else must stand in jax.checkpoint?"
    if any(e.params.get("policy") is not None for e in again):
        return "What does your policy say of the gather's own result?"
    if not any(e.primitive.name == "scan" for e in all_of_it):
        return "The layers are written out one after another, and this compiler makes one of two equal gathers. In a scan it leaves both."
    return "Does the gather stand inside what is computed again?"


def _what(value):
    return f"an array of shape {value.shape}" if hasattr(value, "shape") else shown(value)


WHY = {  # what a message of JAX means here
    "unbound axis name": "The mesh has one axis, called 'data'.",
    "and (96,)": "Gathered along its rows, a weight is too long. Which axis do the pieces lie along?",
    "and (192,)": "Gathered along its rows, a weight is too long. Which axis do the pieces lie along?",
    "got (24,) and (4,)": "The pieces of the 4 devices lie along an axis of their own. What joins them along the last one?",
    "got (10,)": "That has an n-th of the columns still. Are the weights whole, or do the pieces lie along an axis of their own?",
    "must match shard count": "As it is called, psum_scatter wants an axis as long as there are devices. What cuts a longer one in pieces (`tiled`)?",
    "dot_general": "On a device a weight has all its rows and a part of its columns. Which axis do the pieces lie along?",
    "incompatible shapes": "On a device a weight has all its rows and a part of its columns. Which axis do the pieces lie along?",
    "carry": "What a loop hands on keeps its shape and its type: zeros are typed as shared, and what is added to them varies (utils.compat.varying).",
}


def _compiled(mapped, args):
    fast = {"xla_backend_optimization_level": 0} if jax.default_backend() == "cpu" else None  # it runs once
    try:
        return mapped.lower(*args).compile(compiler_options=fast)
    except Wrong as wrong:
        why = next((f" {words}" for said, words in WHY.items() if said in str(wrong)), "")
        raise Wrong(f"{wrong}{why}") from wrong


@exercise(
    _judge_gated_loss,
    "As `again`: a layer that gathers its three weights along their last axis (`axis=1` of a layer's matrix, `tiled=True`), in "
    "jax.checkpoint, in a scan; then the mean, and `pmean` over 'data'.",
)
def gated_loss(params, x, y):
    """Per device: a dict of pieces a, b, c; own rows x, y -> the loss of all, ()."""

    @jax.checkpoint
    def layer(x, pieces):
        whole = {k: jax.lax.all_gather(p, "data", axis=1, tiled=True) for k, p in pieces.items()}
        return x + (jnp.tanh(x @ whole["a"]) * (x @ whole["b"])) @ whole["c"], None

    x, _ = jax.lax.scan(layer, x, params)
    return jax.lax.pmean(((x - y) ** 2).mean(), "data")


# --- 10.3

MATRICES = {"u": (24, 40), "v": (40, 16)}
SMALL = 24 * 40 + 40 * 16


def _of_one(weights, x, y):
    """The loss of one small batch; Wrong where it is called with anything else."""
    for name, shape in MATRICES.items():
        if np.shape(weights[name]) != shape:
            raise Wrong(
                f"You call of_one with {name!r} of shape {np.shape(weights[name])}; it takes whole weights, {shape}."
            )
    if np.shape(x) != (5, 24) or np.shape(y) != (5, 16):
        raise Wrong(
            f"You call of_one with x of shape {np.shape(x)}, y of {np.shape(y)}; it takes one small batch, here (5, 24) and (5, 16)."
        )
    return ((jnp.tanh(x @ weights["u"]) @ weights["v"] - y) ** 2).mean()


@functools.cache
def _accumulate_case(n, k):
    """Weights, x, y of k small batches of 5 rows a device; the gradients (n, k, ...) of each by whole weights."""
    rng = np.random.default_rng(n + k)
    weights = {name: np.float32(rng.normal(size=s) / s[0] ** 0.5) for name, s in MATRICES.items()}
    scale = 1 + np.arange(n * k).reshape(n, k, 1, 1)  # each small batch has another gradient
    x = np.float32(rng.normal(size=(n, k, 5, 24)))
    y = np.float32(rng.normal(size=(n, k, 5, 16)) * scale)
    grads = jax.jit(jax.vmap(jax.vmap(jax.grad(_of_one), (None, 0, 0)), (None, 0, 0)))(weights, x, y)
    return weights, x, y, {name: np.asarray(g) for name, g in grads.items()}


def _accumulate_slips(each, n, k):
    """What known slips return for a weight, whose gradients on the devices by small batch are `each` (n, k, ...)."""
    right = each.mean((0, 1))
    own = np.concatenate([np.split(mine, n)[i] for i, mine in enumerate(each.mean(1))])
    pieces = np.tile(np.mean(np.split(right, n), axis=0), (n, 1))
    added, of_all = (
        "the k gradients are added up; their mean is asked",
        "the sum over the devices is asked to be a mean",
    )
    eight = [(n / 8 * right, f"you divide by 8; this mesh has {n} devices")] if n != 8 else []
    return right, [
        *eight,
        (-right, "its sign is the other one"),
        (k * right, added),
        (n * right, of_all),
        (n * k * right, f"{added}, and {of_all}"),
        (right / n, "it is divided by the number of devices twice"),
        (right / k, "it is divided by k twice"),
        (each[:, -1].mean(0), "that is the gradient of the last small batch alone"),
        (n * each[:, -1].mean(0), f"that is the gradient of the last small batch alone, and {of_all}"),
        (each[:, 0].mean(0), "that is the gradient of the first small batch alone"),
        (own, "each device has its piece of its own gradient; nothing is added up over the devices"),
        (k * own, f"each device has its piece of its own gradient; nothing is added up over the devices, and {added}"),
        (pieces, "the pieces are averaged over the devices, and each device has another piece"),
        (n * pieces, "the pieces are added up over the devices, and each device has another piece"),
    ]


def _judge_accumulate(answer):
    for n, k in ((8, 3), (4, 5)):
        mesh = make_mesh((n,), ("data",))
        weights, x, y, grads = _accumulate_case(n, k)

        def checked(pieces, x, y, n=n):
            got = answer(_of_one, pieces, x[0], y[0])
            if not isinstance(got, dict) or set(got) != set(MATRICES):
                raise Wrong(
                    f"You return {_what(got)}; expected the gradient's pieces in a dict with {', '.join(map(repr, MATRICES))}."
                )
            for name, (rows, columns) in MATRICES.items():
                if np.shape(got[name]) == (rows, columns):
                    raise Wrong(
                        f"Your gradient by {name!r} is whole, {(rows, columns)}; the device's piece of it is asked."
                    )
                if np.shape(got[name]) != (rows // n, columns):
                    raise Wrong(
                        f"On each of {n} devices your gradient by {name!r} has shape {np.shape(got[name])}; its piece has {(rows // n, columns)}."
                    )
            return got

        cut = {name: P("data") for name in MATRICES}
        mapped = jax.jit(jax.shard_map(checked, mesh=mesh, in_specs=(cut, P("data"), P("data")), out_specs=cut))
        args = jax.device_put((weights, x, y), NamedSharding(mesh, P("data")))
        program = _compiled(mapped, args)
        got = {name: np.asarray(g) for name, g in program(*args).items()}
        for name, mine in got.items():
            right, slips = _accumulate_slips(grads[name], n, k)
            size = np.abs(right).max()
            if not np.allclose(mine, right, rtol=1e-3, atol=1e-4 * size):
                near = [
                    words
                    for value, words in slips
                    if np.allclose(mine, value, rtol=1e-3, atol=1e-4 * np.abs(value).max())
                ]
                why = near[0] if near else "compare it with the mean of all n k gradients, on one device"
                at = f"[0, 0] is {amount(float(mine[0, 0]))}, expected {amount(float(right[0, 0]))}"
                raise Wrong(
                    f"On {n} devices, with {k} small batches, your gradient by {name!r} is another: {at}: {why}."
                )
        _refuse_passes(cost(program), n, k)


def _refuse_passes(found, n, k):
    sent = sum(c.bytes_sent for c in found if c.bytes_sent > 64) / ((n - 1) / n * 4 * SMALL)
    if sent < 2.01:
        return
    words = {
        2 * k: "both the weights and the gradients travel in every small batch",
        3 * k: "both the weights and the gradients travel in every small batch",
        1 + k: "the weights come once, and the gradients are added up over the devices in every small batch",
        1 + 2 * k: "the weights come once, and the gradients are all-reduced in every small batch",
        3: "the gradients are all-reduced, and each device needs its piece of the sum alone",
    }
    why = next(
        (text for rounds, text in words.items() if abs(sent - rounds) < 0.02),
        "one gather and one reduce-scatter are two",
    )
    raise Wrong(f"The gradient is right. With {k} small batches a step sends {sent:.3g} rounds, not two: {why}.")


@exercise(
    _judge_accumulate,
    "Gather first, and differentiate by the whole weights: they vary, so no sum is hidden. Add up in a scan; at the end one "
    "psum_scatter(..., tiled=True), divided by n k.",
)
def accumulate(of_one, pieces, x, y):
    """Per device, axis 'data': pieces of weights, x, y (k, rows, width) -> gradient."""
    weights = jax.tree.map(lambda p: jax.lax.all_gather(p, "data", tiled=True), pieces)

    def add(total, batch):
        return jax.tree.map(jnp.add, total, jax.grad(of_one)(weights, *batch)), None

    total, _ = jax.lax.scan(add, jax.tree.map(lambda w: w - w, weights), (x, y))
    count = len(x) * jax.lax.psum(1, "data")
    return jax.tree.map(lambda g: jax.lax.psum_scatter(g, "data", tiled=True) / count, total)


# --- 10.4


def _judge_tokens_to_hide(answer):
    for flops, rate, n, wide, grad, work in (
        (197e12, 100e9, 8, 0.5, 4, 7),  # widths with which each slip gives another number
        (989.5e12, 450e9, 64, 1, 4, 6),
        (459e12, 200e9, 5, 2, 4, 8),
    ):
        case = f"tokens_to_hide({flops:g}, {rate:g}, {n}, {wide:g}, {grad}, {work}): "
        said = number(
            answer(flops, rate, n, wide, grad, work), "one number, of tokens", said=f"{case}you return", positive=True
        )
        by_factors(
            said,
            case,
            "tokens",
            lambda bytes, share, rates, work: bytes * share * rates / work,
            {"bytes": 2 * wide + grad, "share": (n - 1) / n, "rates": flops / rate, "work": work},
            {
                "bytes": [
                    (wide + grad, "the weights are gathered twice, forward and backward"),
                    (2 * wide, "the gradients travel, too"),
                    (wide + 2 * grad, "weights travel twice, and gradients once; you have it the other way round"),
                    (2 * wide + 2 * grad, "gradients are reduce-scattered, half of an all-reduce"),
                    (3 * wide, "the gradients have a width of their own"),
                    (3 * grad, "the weights have a width of their own"),
                    (2 * (2 * wide + grad), "gathers and reduce-scatters go around once, (n - 1)/n each"),
                    (3, "you count numbers, not bytes"),
                    (1.5 * (wide + grad), "of the three rounds two are of weights, and one of gradients"),
                    ((2 * wide + grad) / 8, "you divide by 8; the widths are bytes already"),
                ],
                "share": [
                    (1, "a chip does not send itself its own part: (n - 1)/n"),
                    (1 / n, "that is one step of the ring; there are n - 1"),
                    (n - 1, "all chips together have n times the tokens; those on each are asked"),
                    (n / (n - 1), "(n - 1)/n stands upside down"),
                    (7 / 8, "7/8 is that of eight chips; n says how many there are"),
                    (n, "all chips together have n times the tokens; those on each are asked"),
                ],
                "rates": [(rate / flops, "FLOP/s and bytes/s are in each other's place")],
                "work": [
                    (1, "the FLOPs for each parameter and token are missing"),
                    (2, "2 FLOPs are the forward pass alone; `work` says how many there are"),
                    (7, "`work` says how many FLOPs there are"),
                    (6, "`work` says how many FLOPs there are"),
                    (2 * work, "`work` counts FLOPs: a multiplication and an addition are two of them already"),
                    (1 / work, "the FLOPs stand on the wrong side: more work needs fewer tokens"),
                ],
            },
            "set the seconds for sending one parameter's bytes equal to those of its work on T tokens, and solve for T",
        )  # fmt: skip


@exercise(
    _judge_tokens_to_hide,
    "For each parameter: (2 weight_bytes + gradient_bytes) (n - 1)/n / rate seconds to send, work T / flops to compute.",
)
def tokens_to_hide(flops, rate, n, weight_bytes, gradient_bytes, work):
    """Return the tokens on each of n chips at which sending takes as long as work."""
    sent = (2 * weight_bytes + gradient_bytes) * (n - 1) / n  # bytes for each parameter
    return sent / rate * flops / work
