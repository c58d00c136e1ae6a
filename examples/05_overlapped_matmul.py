"""python overlapped_matmul.py 64 32 128256: scores of 64 tokens, and five best words.

The tokens, 32 numbers each, travel round a ring while they are multiplied. No device
ever needs all scores. The result is held against NumPy's.
"""

import re
import sys
from collections import Counter
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

TOKENS, WIDTH, WORDS = map(int, sys.argv[1:])
jax.config.update("jax_num_cpu_devices", 8)  # emulated, where there is no GPU or TPU
mesh = jax.make_mesh((jax.device_count(),), ("X",), axis_types=(AxisType.Auto,))
jax.set_mesh(mesh)
n = mesh.size
assert TOKENS % n == 0 == WORDS % n, f"{n} devices do not divide {TOKENS} and {WORDS}"


@partial(jax.shard_map, in_specs=(P("X"), P(None, "X")), out_specs=P(None, "X"))
def multiply(x, w):  # one device: some tokens, some words -> all tokens, some words
    me, rows = jax.lax.axis_index("X"), len(x)
    y = jnp.zeros((TOKENS, w.shape[1]), x.dtype)
    for step in range(n):
        part = x @ w  # YOURS: what to do with the tokens that are here
        y = jax.lax.dynamic_update_slice(y, part, ((me - step) % n * rows, 0))
        if step < n - 1:  # the send needs x alone, so it can run beside the product
            x = jax.lax.ppermute(x, "X", [(i, (i + 1) % n) for i in range(n)])
    return y


@partial(jax.shard_map, in_specs=P(None, "X"), out_specs=P(None, "X"))
def candidates(y):  # one device: (TOKENS, WORDS / n) -> twice (TOKENS, 5)
    values, places = jax.lax.top_k(y, 5)
    return values, places + y.shape[1] * jax.lax.axis_index("X")


@jax.jit
def best_five(x, w):
    values, words = candidates(multiply(x, w))
    best, at = jax.lax.top_k(values, 5)
    return best, jnp.take_along_axis(words, at, axis=1)


def collectives(f, *args):  # of the compiled program: kind and shape, how often
    line = r"= \(?(\w+\[[\d,]*\]).* ((?:all|collective|reduce)-[a-z]+)(?:-start)?\("
    found = Counter(re.findall(line, jax.jit(f).lower(*args).compile().as_text()))
    return ", ".join(f"{many} {kind} {size}" for (size, kind), many in found.items())


rng = np.random.default_rng(0)
x, w = (
    rng.normal(size=s).astype(np.float32) for s in ((TOKENS, WIDTH), (WIDTH, WORDS))
)
placed = jax.device_put(x, P("X", None)), jax.device_put(w, P(None, "X"))
best, words = map(np.asarray, best_five(*placed))
scores = x.astype(np.float64) @ w
np.testing.assert_allclose(best, np.sort(scores)[:, :-6:-1], rtol=1e-2)
np.testing.assert_allclose(best, np.take_along_axis(scores, words, 1), rtol=1e-2)
print(f"best five of {WORDS:,} words for {TOKENS} tokens: as NumPy finds them")
print("plain jit:", collectives(lambda x, w: jax.lax.top_k(x @ w, 5), *placed))
print("this one: ", collectives(best_five, *placed))
