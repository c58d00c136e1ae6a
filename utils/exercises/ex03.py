"""Exercises of notebook 03, Automatic parallelism with jit."""

from __future__ import annotations

from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from utils.compat import spec_text
from utils.count.cost import cost
from utils.exercises import Wrong, exercise, number, numbers, same, spell
from utils.mesh import make_mesh


def _mesh():
    return make_mesh((2, 4), ("x", "y"))


def _judge_price_of_sums(answer):
    got = numbers(answer(), (2,), "two numbers: for the column sums, for the row sums")
    # By hand: a device holds (512, 128). Column sums: 128 numbers, 512 bytes, n = 2. Row sums: 512 numbers, 2,048 bytes, n = 4.
    for name, said, n, b, whole in (("column", got[0], 2, 512, 2_048), ("row", got[1], 4, 2_048, 4_096)):
        want = 2 * (n - 1) * b // n
        if said == want:
            continue
        reasons = {
            b: "that is what a device puts in. An all-reduce sends 2 (n - 1) / n times that.",
            want // 2: "that is half of an all-reduce: a reduce-scatter. The totals have to be handed out too.",
            want // 4: "that counts elements. A float32 takes 4 bytes.",
            whole: "that is the size of the whole result. A device puts in only the sums of its own block.",
            2
            * (n - 1)
            * whole
            // n: "you let a device put in the whole result. It has only the sums of its own block.",
            1024 * 512 * 4: "that is the whole array. Only the partial sums travel.",
            2 * (8 - 1) * b // 8: "you took a group of 8. The groups lie along one mesh axis.",
        }
        axis = "rows, so partners lie along 'x'" if name == "column" else "columns, so partners lie along 'y'"
        general = (
            f"A device holds (512, 128). {name.capitalize()} sums add up {axis}: what does it put in, and what is n?"
        )
        reason = reasons.get(said, general)
        raise Wrong(f"{name.capitalize()} sums: you say {said:,.0f}, {said / want:.3g} times what is sent; {reason}")


@exercise(
    _judge_price_of_sums,
    "Each device holds (512, 128). How many partial sums is that, how many bytes, and how many devices share the same columns (or rows)?",
)
def price_of_sums():
    """Return the bytes that each device sends: for column sums, for row sums."""
    columns, rows = 128 * 4, 512 * 4  # the bytes of a device's own sums
    return 2 * (2 - 1) * columns // 2, 2 * (4 - 1) * rows // 4


_LAYOUTS = [
    (("x", None), (None, "y"), "Who cuts the contraction? Each device has its rows and its columns whole."),
    (
        (None, "x"),
        ("x", None),
        "Both cut the contraction by 'x'. What does a device hold after its own product?",
    ),
    (("x", "y"), ("y", None), "Both cut the contraction by 'y'. What does a device hold after its own product?"),
    (
        ("x", "y"),
        (),
        "The rows of a are cut by 'y', and b is whole. What does a device lack before it can multiply?",
    ),
    (
        ("x", "y"),
        ("x", "y"),
        "A device lacks parts of its rows of a and of its columns of b. Different axes cut the contraction, so partial sums do not match.",
    ),
    (("x", None), (), "Each device has its rows whole and all of b: data parallelism. What is missing?"),
    ((), (None, "x"), "Each device has all of a and its columns of b whole: model parallelism. What is missing?"),
    (
        ("x", None),
        ("x", None),
        "This is the one that breaks the rules: the compiler brings in the idle axis 'y'. It moves pieces, then adds up.",
    ),
]


def collectives():
    """The kinds of collectives of each of the eight products, as counted."""
    found = []
    for a, b, _ in _LAYOUTS:
        operands = [
            jax.ShapeDtypeStruct((64, 64), jnp.float32, sharding=NamedSharding(_mesh(), PartitionSpec(*s)))
            for s in (a, b)
        ]
        found.append(sorted(c.kind for c in cost(lambda p, q: p @ q, *operands)))
    return found


def _judge_collectives_of_products(answer):
    got = answer()
    if not isinstance(got, (list, tuple)) or len(got) != 8 or not all(isinstance(row, (list, tuple)) for row in got):
        raise Wrong(
            "Expected a list of eight lists, one for each row of the table; an empty list where nothing is sent."
        )
    kinds = ("all-reduce", "all-gather", "collective-permute", "reduce-scatter", "all-to-all")
    wrong = []
    for i, (said, want, (a, b, why)) in enumerate(zip(got, collectives(), _LAYOUTS, strict=True)):
        strangers = [name for name in said if name not in kinds]
        if strangers:
            raise Wrong(f"Row {i}: {strangers[0]!r} is not one of {', '.join(kinds)}.")
        if sorted(set(said)) != sorted(set(want)):
            wrong.append(
                f"Row {i}, {spec_text(PartitionSpec(*a))} by {spec_text(PartitionSpec(*b))}: you say "
                f"{' and '.join(said) or 'nothing'}. {why}"
            )
    if wrong:
        raise Wrong(f"{8 - len(wrong)} of 8 rows are right. {wrong[0]}")


@exercise(
    _judge_collectives_of_products,
    "Look at the contraction alone: the second entry of a's spec and the first of b's. The same name twice? A name in one of them?",
)
def collectives_of_products():
    """Return a list of eight lists: the collectives of each product of the table."""
    gather, reduce = "all-gather", "all-reduce"
    return [[], [reduce], [reduce], [gather], [gather, gather], [], [], ["collective-permute", reduce]]


def _judge_silent_spec(answer):
    spec = answer()
    if not isinstance(spec, PartitionSpec):
        raise Wrong(f"You return a {type(spec).__name__}, {spec!r}; expected a PartitionSpec: P(...).")
    grid = make_mesh((4, 2), ("batch", "features"))
    try:
        sharding = NamedSharding(grid, spec)
        shape = sharding.shard_shape((8, 16))
    except Exception as error:
        raise Wrong(
            f"{spec_text(spec)} does not fit (8, 16) examples. JAX says: {str(error).splitlines()[0]}"
        ) from error
    found = cost(jax.vmap(jnp.dot), *[jax.ShapeDtypeStruct((8, 16), jnp.float32, sharding=sharding)] * 2)
    if found.bytes_sent:
        raise Wrong(
            f"{spec_text(spec)}: each device sends {found.bytes_sent} bytes. You cut the features, so each dot product is in parts."
        )
    if np.prod(shape) != 16:
        raise Wrong(
            f"{spec_text(spec)}: nothing is sent, but each device holds {shape}, {np.prod(shape) / 128:.3g} of the examples, not an "
            "eighth. Which axis of the mesh is idle, and may it cut the rows as well?"
        )


@exercise(
    _judge_silent_spec,
    "Only the first axis of the array may be cut. One entry of a spec can name both axes of the mesh: a tuple.",
)
def silent_spec():
    """Return a spec for (8, 16) examples: an eighth on each device, nothing sent."""
    return PartitionSpec(("batch", "features"))


def _judge_make_weights(answer):
    whole = []

    def device_put(x, *rest, real=jax.device_put, **options):
        whole.append(np.shape(x) == (64, 128))
        return real(x, *rest, **options)

    def whole_first(*args, **options):
        raise Wrong(
            "jax.make_array_from_callback is for values from outside: to give it random numbers, you make the whole array first. "
            "Compile the making, and give jit the layout of the result."
        )

    for spec in (PartitionSpec("x", "y"), PartitionSpec(None, "y")):
        sharding, key = NamedSharding(_mesh(), spec), jax.random.key(7)
        patches = {"device_put": device_put, "make_array_from_callback": whole_first}
        with mock.patch.multiple(jax, **patches):
            got = answer(key, sharding)
        if any(whole):
            raise Wrong(
                "You make the weights on one device and cut them afterwards: a model that needs all eight devices runs out of "
                "memory there. Compile the making, and give jit the layout of the result."
            )
        if isinstance(got, jax.Array) and got.shape == (64, 128) and not got.sharding.is_equivalent_to(sharding, 2):
            raise Wrong(
                f"Your weights are laid out as {spell(got.sharding)}; expected {spell(sharding)}. Which argument of jit says so?"
            )
        same(got, jax.device_put(jax.random.normal(key, (64, 128)), sharding), "Your array of weights")


@exercise(
    _judge_make_weights,
    "jax.jit(function, out_shardings=sharding) gives a program that makes its result in that layout. Call it with the key.",
)
def make_weights(key, sharding):
    """Return normal (64, 128) weights of the key, made in the sharding's layout."""
    return jax.jit(lambda key: jax.random.normal(key, (64, 128)), out_shardings=sharding)(key)


def _judge_count_programs(answer):
    got = number(answer(), "a whole number", whole=True)
    if got != 4:
        reasons = {
            7: "that is every call. A program is kept and used again.",
            6: "two too many. Do values count? And in which layout does f return its result?",
            5: "one too many. Do values count? And in which layout does f return its result?",
            3: "one too few. Shape, dtype and sharding are all part of the key.",
            2: "too few. Shape, dtype and sharding are all part of the key.",
            1: "too few. Shape, dtype and sharding are all part of the key.",
        }
        raise Wrong(f"You say {got}: {reasons.get(got, 'there are seven calls, and the first one compiles.')}")


@exercise(
    _judge_count_programs,
    "Write the key of each call: shape, dtype, sharding. f is element-wise, so computation follows the data.",
)
def count_programs():
    """Return how many programs `jit` has compiled after the six calls."""
    keys = {((4, 8), "float32", "x, y"), ((4, 8), "float32", "x"), ((2, 8), "float32", "x"), ((4, 8), "int32", "x")}
    return len(keys)
