"""Exercises and predictions of lesson 14, Cut the experts: mixture of experts."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from exercises.framework import Edit, Mistake, Prediction, WhenMessage, exercise, run_per_device

router_gradient = Prediction(
    0,
    "with one expert a token the gate is p / p = 1, whatever the router says",
    {0.0034: "that is with the gate p; divided by its own sum, the gate is 1, whatever the router says"},
)
without_seat = Prediction(
    25,
    "an expert has ceil(1.25 · 64 / 8) = 10 seats: 1 of 11, 21 of 31 and 3 of 13 tokens are too many",
    {
        0: "there are 80 seats for 64 tokens, but empty seats of one expert do not help another",
        31: "with 8 seats; the factor gives 10",
        39: "those find a seat",
    },
    "tokens",
)
exchanges = Prediction(
    4,
    "the gradient of each all-to-all is an all-to-all the other way",
    {
        2: "those of the forward pass; the gradient goes back through both",
        3: "the gradient with respect to x is asked for, too, and must come home",
        1: "the tokens go there, the results come back, and the gradient goes through both",
    },
    "all-to-alls",
)
padding = Prediction(
    6.4,
    "seats are sent, taken or empty: 64 in place of 10",
    {
        1.6: "that is the growth in seated tokens; empty seats are sent, too",
        1: "the same tokens, but more seats, and seats are what is sent",
        64: "64 seats in place of 10",
    },
    "times",
    within=0.01,
)
devices_served = Prediction(
    2,
    "the first 80 tokens of the batch take the 80 seats: 64 on device 0 and 16 on device 1",
    {
        8: "in eight groups; one group seats the tokens in the order of the whole batch",
        1: "device 0 has 64 tokens, and there are 80 seats",
        1.25: "count each device that has at least one seated token",
    },
    "devices",
)
raises = Prediction(
    False,
    "einsum broadcasts: the device's one expert works on all eight stacks of slots",
    {True: "under the letter e stand 8 and 1. What does NumPy do with an axis of 1?"},
)


@exercise(
    "Seats first, rounded up once: factor · k · tokens / experts. A device sends slots for all experts, and keeps an n-th. "
    "How many all-to-alls are there, forward and backward?",
    cases=[
        (96, 10, 16, 2, 1.25, 8, 2),
        (50, 7, 6, 1, 1.5, 3, 4),
        (21, 5, 12, 3, 0.75, 4, 2),
        (33, 6, 10, 2, 1.0, 5, 4),
        (6, 3, 24, 1, 1.25, 12, 2),
    ],
    mistakes=[
        Mistake(Edit("4 * (n - 1)", "2 * (n - 1)"), "those are the two forward; the gradient goes back through both"),
        Mistake(Edit("(n - 1) / n", "1"), "a device keeps the slots for its own experts: an n-th does not travel"),
        Mistake(Edit("factor * k * tokens", "factor * tokens"), "each token takes a seat at k experts"),
        Mistake(Edit("math.ceil", "math.floor"), "a part of a seat is a seat: round the seats up"),
        Mistake(
            Edit("math.ceil(factor * k * tokens / experts)", "factor * k * tokens / experts"),
            "whole seats travel, also where the last one is not filled: round the seats up",
        ),
        Mistake(
            Edit("(n - 1) / n * experts", "(n - 1) / n * experts / n"),
            "a device has slots for all experts, not for its own alone",
        ),
    ],
    question="How many seats has an expert for the tokens of one device? Which of them leave, and how often?",
)
def sent_per_step(tokens, width, experts, k, factor, n, size):
    """Return the bytes that a device sends in all-to-alls, forward and backward."""
    seats = math.ceil(factor * k * tokens / experts)
    return 4 * (n - 1) / n * experts * seats * width * size


def _tables():
    """ids and tables of all devices: (n tokens,) and (n rows, width)."""
    rng = np.random.default_rng(14)

    def case(n, tokens, rows, width):
        ids = rng.integers(0, n * rows, n * tokens, dtype=np.int32)
        ids[:tokens] = n * rows - 1 - np.arange(tokens) % 3  # all of device 0's at the last device, some twice
        return ids, rng.normal(size=(n * rows, width)).astype(np.float32), n

    return {
        "of 4 devices with 6 ids and 30 rows": case(4, 6, 30, 5),
        "of 8 devices with 5 ids and 17 rows": case(8, 5, 17, 3),
        "of 2 devices with 7 ids and 40 rows": case(2, 7, 40, 9),
    }


def _looked_up(f, ids, table, n):
    specs = {"in_specs": (P("expert"), P("expert")), "out_specs": P("expert")}
    return run_per_device(f, ids, table, mesh={"expert": n}, **specs)


@exercise(
    "Row r of the whole table is row r % rows of device r // rows. Ask each device, by all_to_all, for an array "
    "(n, tokens) of rows. Answer with `table[asked]`, send that back, and pick the owners' answers.",
    cases=_tables,
    run=_looked_up,
    mistakes=[
        Mistake(Edit("ids % rows", "ids"), "an id counts through the whole table; the owner's rows begin at 0"),
        Mistake(Edit("table[asked]", "table[wanted]"), "you read your own rows: the questions have not travelled"),
        Mistake(
            Edit('jax.lax.all_to_all(table[asked], "expert", 0, 0)', "table[asked]"),
            "the answers stay with those who were asked",
        ),
        Mistake(
            Edit("[owner, jnp.arange(tokens)]", ".sum(axis=0)"),
            "every device answers, and one of them owns the row: pick the owner's answer",
        ),
        WhenMessage("bytes that a device sends", "Send ids and the rows that were asked for, not the table"),
    ],
    question="Who owns the row of an id, and where in its piece does it stand?",
)
def look_up(ids, table):
    """Per device: ids (tokens,), own rows (rows, width) -> rows (tokens, width)."""
    n, rows, tokens = jax.lax.axis_size("expert"), len(table), len(ids)
    owner = ids // rows
    wanted = jnp.tile(ids % rows, (n, 1))  # (n, tokens): ask every device
    asked = jax.lax.all_to_all(wanted, "expert", 0, 0)
    answers = jax.lax.all_to_all(table[asked], "expert", 0, 0)
    return answers[owner, jnp.arange(tokens)]


def _choices():
    rng = np.random.default_rng(4)

    def case(n, tokens, experts):
        p = rng.dirichlet(np.ones(experts), n * tokens)
        p[:tokens] = p[:tokens] ** 3 / (p[:tokens] ** 3).sum(1, keepdims=True)  # device 0's are another mixture
        favour = np.arange(n * tokens)[:, None] // tokens == np.arange(experts)
        return p.astype(np.float32), np.eye(experts, dtype=np.float32)[(p + 0.3 * favour).argmax(1)], n

    return {
        "of 4 devices with 12 tokens and 5 experts": case(4, 12, 5),
        "of 8 devices with 7 tokens and 16 experts": case(8, 7, 16),
        "of 2 devices with 9 tokens and 6 experts": case(2, 9, 6),
    }


def _balanced(f, p, choice, n):
    specs = {"in_specs": (P("expert"), P("expert")), "out_specs": P("expert")}
    return run_per_device(
        lambda p, choice: _one(f(p, choice))[None], p, choice, mesh={"expert": n}, measure=(), **specs
    )


def _one(value):
    value = jnp.asarray(value)
    if value.ndim:
        raise ValueError(f"an array of shape {value.shape}, where one number is asked")
    return value


def _mean_of_balances(p, choice):
    return jax.lax.pmean(p.shape[1] * (choice.mean(axis=0) * p.mean(axis=0)).sum(), "expert")


@exercise(
    "The share and the mean probability of each expert are means over the tokens of a device. Average each of them over "
    "the devices, before you multiply.",
    cases=_choices,
    run=_balanced,
    mistakes=[
        Mistake(
            _mean_of_balances,
            "a mean of products is not the product of the means: average the two factors, then multiply",
        ),
        Mistake(
            Edit('jax.lax.pmean(p.mean(axis=0), "expert")', "p.mean(axis=0)"),
            "the mean probability is that of one device, so each device has another balance",
        ),
        Mistake(
            Edit('jax.lax.pmean(choice.mean(axis=0), "expert")', "choice.mean(axis=0)"),
            "the share is that of one device, so each device has another balance",
        ),
        Mistake(
            Edit("pmean", "psum", count=2),
            "psum adds up the means of the devices; the mean over all tokens is their mean",
        ),
        Mistake(Edit("p.shape[1] *", ""), "times the number of experts"),
        Mistake(
            Edit("(share * probability).sum()", 'jax.lax.pmean((choice * p).sum(axis=1).mean(), "expert")'),
            "share and mean probability are two means, each over all tokens; multiply them afterwards",
        ),
    ],
    question="Which means are taken over what, and when are they multiplied?",
)
def whole_balance(p, choice):
    """In shard_map over 'expert': the balance of the tokens of all devices, ()."""
    share = jax.lax.pmean(choice.mean(axis=0), "expert")
    probability = jax.lax.pmean(p.mean(axis=0), "expert")
    return p.shape[1] * (share * probability).sum()
