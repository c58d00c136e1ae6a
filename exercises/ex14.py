"""Exercises and predictions for lesson 14, Split the experts: mixture of experts."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from exercises.framework import Edit, MessageHint, Mistake, Prediction, exercise, run_per_device

router_gradient = Prediction(
    0,
    "with one expert per token, the gate is p / p = 1, whatever the router says",
    {0.0034: "that's for the gate p, but divided by its own sum, the gate is 1, whatever the router says"},
)
without_seat = Prediction(
    25,
    "an expert has ceil(1.25 · 64 / 8) = 10 seats, so 1 of 11, 21 of 31 and 3 of 13 tokens don't get one",
    {
        0: "there are 80 seats for 64 tokens, but one expert's empty seats don't help another expert's tokens",
        31: "that's for 8 seats per expert, but the factor gives 10",
        39: "that's how many get a seat",
    },
    "tokens",
)
exchanges = Prediction(
    4,
    "the gradient of each all-to-all is an all-to-all in the opposite direction",
    {
        2: "those are the forward pass's, but the gradient goes back through both",
        3: "you also need the gradient with respect to x, which has to return to the tokens' own devices",
        1: "the tokens are sent out, the results come back, and the gradient goes through both",
    },
    "all-to-alls",
)
padding = Prediction(
    6.4,
    "all seats are sent, taken or empty, and there are 64 per expert instead of 10",
    {
        1.6: "that's the growth in seated tokens, but empty seats are sent too",
        1: "the tokens are the same, but there are more seats, and it's seats that are sent",
        64: "divide by the 10 seats that an expert had before",
    },
    "times",
    rel_tol=0.01,
)
devices_served = Prediction(
    2,
    "the first 80 tokens of the batch take the 80 seats: 64 on device 0 and 16 on device 1",
    {
        8: "that's for eight groups, but a single group seats the tokens in the order of the full batch",
        1: "device 0 has 64 tokens, and there are 80 seats",
        1.25: "count each device that has at least one seated token",
    },
    "devices",
)
raises = Prediction(
    False,
    "einsum broadcasts, so the device's one expert processes all eight stacks of slots",
    {True: "the letter e has sizes 8 and 1. What does NumPy do with an axis of size 1?"},
)


@exercise(
    "First compute the seats per expert, factor · k · tokens / experts, and round up once. A device has slots "
    "for all experts, and keeps 1/n of them. How many all-to-alls are there, forward and backward?",
    cases=[
        (96, 10, 16, 2, 1.25, 8, 2),
        (50, 7, 6, 1, 1.5, 3, 4),
        (21, 5, 12, 3, 0.75, 4, 2),
        (33, 6, 10, 2, 1.0, 5, 4),
        (6, 3, 24, 1, 1.25, 12, 2),
    ],
    mistakes=[
        Mistake(
            Edit("4 * (n - 1)", "2 * (n - 1)"),
            "that counts the two in the forward pass, but the gradient goes back through both",
        ),
        Mistake(
            Edit("(n - 1) / n", "1"), "a device keeps the slots for its own experts, so 1/n of the bytes isn't sent"
        ),
        Mistake(Edit("factor * k * tokens", "factor * tokens"), "each token takes a seat at k experts"),
        Mistake(Edit("math.ceil", "math.floor"), "a fraction of a seat still needs a seat, so round up"),
        Mistake(
            Edit("math.ceil(factor * k * tokens / experts)", "factor * k * tokens / experts"),
            "only whole seats exist and are sent, so round the number of seats up",
        ),
        Mistake(
            Edit("(n - 1) / n * experts", "(n - 1) / n * experts / n"),
            "a device has slots for all experts, not only for its own",
        ),
    ],
    question=(
        "How many seats does an expert have for one device's tokens? Which of them are sent, and how many times?"
    ),
)
def sent_per_step(tokens, width, experts, k, factor, n, size):
    """Return the bytes that a device sends in all-to-alls, forward and backward."""
    seats = math.ceil(factor * k * tokens / experts)
    return 4 * (n - 1) / n * experts * seats * width * size


def _table_cases():
    """Make the ids (n · tokens,) and the table (n · rows, width) of all devices, for several sizes."""
    rng = np.random.default_rng(14)

    def case(n, tokens, rows, width):
        ids = rng.integers(0, n * rows, n * tokens, dtype=np.int32)
        ids[:tokens] = (
            n * rows - 1 - np.arange(tokens) % 3
        )  # device 0's ids are all on the last device, some of them twice
        return ids, rng.normal(size=(n * rows, width)).astype(np.float32), n

    return {
        "of 4 devices with 6 ids and 30 rows": case(4, 6, 30, 5),
        "of 8 devices with 5 ids and 17 rows": case(8, 5, 17, 3),
        "of 2 devices with 7 ids and 40 rows": case(2, 7, 40, 9),
    }


def _run_lookup(f, ids, table, n):
    specs = {"in_specs": (P("expert"), P("expert")), "out_specs": P("expert")}
    return run_per_device(f, ids, table, mesh={"expert": n}, **specs)


@exercise(
    "Row r of the full table is row r % rows of device r // rows. Send every device all of your questions in "
    "an all_to_all of an array (n, tokens). Answer with `table[asked]`, send the answers back, and select those "
    "of the owners.",
    cases=_table_cases,
    run=_run_lookup,
    mistakes=[
        Mistake(
            Edit("ids % rows", "ids"), "an id is an index into the full table, but the owner's own rows start at 0"
        ),
        Mistake(
            Edit("table[asked]", "table[wanted]"),
            "you look up your own questions in your own rows: look up the questions that arrived",
        ),
        Mistake(
            Edit('jax.lax.all_to_all(table[asked], "expert", 0, 0)', "table[asked]"),
            "you don't send the answers back to the devices that asked",
        ),
        Mistake(
            Edit("[owner, jnp.arange(tokens)]", ".sum(axis=0)"),
            "every device answers, but only one of them owns the row, so select the owner's answer",
        ),
        MessageHint("bytes that a device sends", "Send ids and the requested rows, not the table"),
    ],
    question="Which device owns the row for an id, and at what index of its table is that row?",
)
def look_up(ids, table):
    """Return the full table's rows (tokens, width) for a device's ids (tokens,)."""
    n, rows, tokens = jax.lax.axis_size("expert"), len(table), len(ids)
    owner = ids // rows
    wanted = jnp.tile(ids % rows, (n, 1))  # (n, tokens): ask every device
    asked = jax.lax.all_to_all(wanted, "expert", 0, 0)
    answers = jax.lax.all_to_all(table[asked], "expert", 0, 0)
    return answers[owner, jnp.arange(tokens)]


def _choice_cases():
    rng = np.random.default_rng(4)

    def case(n, tokens, experts):
        p = rng.dirichlet(np.ones(experts), n * tokens)
        p[:tokens] = p[:tokens] ** 3 / (p[:tokens] ** 3).sum(1, keepdims=True)  # a different distribution on device 0
        favour = np.arange(n * tokens)[:, None] // tokens == np.arange(experts)
        return p.astype(np.float32), np.eye(experts, dtype=np.float32)[(p + 0.3 * favour).argmax(1)], n

    return {
        "of 4 devices with 12 tokens and 5 experts": case(4, 12, 5),
        "of 8 devices with 7 tokens and 16 experts": case(8, 7, 16),
        "of 2 devices with 9 tokens and 6 experts": case(2, 9, 6),
    }


def _run_balance(f, p, choice, n):
    specs = {"in_specs": (P("expert"), P("expert")), "out_specs": P("expert")}
    return run_per_device(
        lambda p, choice: _require_scalar(f(p, choice))[None], p, choice, mesh={"expert": n}, measure=(), **specs
    )


def _require_scalar(value):
    value = jnp.asarray(value)
    if value.ndim:
        raise ValueError(f"the result has shape {value.shape}, but must be a single number")
    return value


def _average_balances(p, choice):
    return jax.lax.pmean(p.shape[1] * (choice.mean(axis=0) * p.mean(axis=0)).sum(), "expert")


@exercise(
    "On each device, an expert's share and its mean probability are means over that device's tokens. "
    "Average each of the two over the devices before you multiply them.",
    cases=_choice_cases,
    run=_run_balance,
    mistakes=[
        Mistake(
            _average_balances,
            "a mean of products isn't the product of the means: average the two factors, then multiply",
        ),
        Mistake(
            Edit('jax.lax.pmean(p.mean(axis=0), "expert")', "p.mean(axis=0)"),
            "you use one device's mean probability, so the balance differs between devices",
        ),
        Mistake(
            Edit('jax.lax.pmean(choice.mean(axis=0), "expert")', "choice.mean(axis=0)"),
            "you use one device's share, so the balance differs between devices",
        ),
        Mistake(
            Edit("pmean", "psum", count=2),
            "psum adds up the devices' means, but the mean over all tokens is their average",
        ),
        Mistake(Edit("p.shape[1] *", ""), "you don't multiply by the number of experts"),
        Mistake(
            Edit("(share * probability).sum()", 'jax.lax.pmean((choice * p).sum(axis=1).mean(), "expert")'),
            "the share and the probability are two separate means over all tokens: multiply them after averaging",
        ),
    ],
    question="Over which tokens is each mean taken, and when do you multiply the means?",
)
def whole_balance(p, choice):
    """Return the balance over all devices' tokens, inside shard_map over 'expert'."""
    share = jax.lax.pmean(choice.mean(axis=0), "expert")
    probability = jax.lax.pmean(p.mean(axis=0), "expert")
    return p.shape[1] * (share * probability).sum()
