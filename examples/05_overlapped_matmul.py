"""python overlapped_matmul.py 64 32 128256: find the five best words for 64 tokens.

Send the tokens, vectors of 32 numbers, around a ring while the devices multiply. No
device ever holds every score. Compare the result with NumPy's.
"""

import os
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections import Counter
from functools import partial

os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")  # emulated, without a GPU or TPU

import jax
import jax.numpy as jnp
import numpy as np
from jax import P
from jax.sharding import AxisType, reshard

cli = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
for name, default in {"tokens": 64, "width": 32, "words": 128256}.items():
    cli.add_argument(name, type=int, nargs="?", default=default)
TOKENS, WIDTH, WORDS = vars(cli.parse_args()).values()
KINDS = "all-gather", "all-reduce", "all-to-all", "collective-permute", "reduce-scatter"
mesh = jax.make_mesh((jax.device_count(),), ("X",), axis_types=(AxisType.Explicit,))
jax.set_mesh(mesh)
n = mesh.size
if min(TOKENS, WIDTH) < 1 or WORDS // n < 5 or TOKENS % n or WORDS % n:
    limits = f"words at least {5 * n}, and width at least 1"
    cli.error(f"tokens and words must be positive multiples of {n}, {limits}")


@partial(jax.shard_map, in_specs=(P("X"), P(None, "X")), out_specs=P(None, "X"))
def multiply(x, w):  # per device: some tokens, some words -> all tokens, some words
    me, rows = jax.lax.axis_index("X"), len(x)
    y = jnp.zeros((TOKENS, w.shape[1]), x.dtype)
    for step in range(n):
        part = x @ w  # YOURS: use the tokens that have arrived
        y = jax.lax.dynamic_update_slice(y, part, ((me - step) % n * rows, 0))
        if step < n - 1:  # the send needs only x, so it can overlap the product
            x = jax.lax.ppermute(x, "X", [(i, (i + 1) % n) for i in range(n)])
    return y


@partial(jax.shard_map, in_specs=P(None, "X"), out_specs=P(None, "X"))
def candidates(y):  # per device: (TOKENS, WORDS / n) -> two of (TOKENS, 5)
    values, columns = jax.lax.top_k(y, 5)
    return values, columns + y.shape[1] * jax.lax.axis_index("X")


@jax.jit
def best_five(x, w):
    values, words = candidates(multiply(x, w))
    best, at = jax.lax.top_k(reshard(values, P()), 5)
    token = jnp.arange(TOKENS)[:, None]
    return best, words.at[token, at].get(out_sharding=P())


def plain(x, w):
    scores = jnp.matmul(x, w, out_sharding=P(None, "X"))
    return jax.lax.top_k(reshard(scores, P()), 5)


def collectives(f, *args):  # in the compiled program: count, kind and shape
    counts = Counter()
    for line in jax.jit(f).lower(*args).compile().as_text().splitlines():
        for kind in KINDS:
            if f" {kind}(" in line or f" {kind}-start(" in line:
                shape = line.split(" = ")[1].lstrip("(").split("{")[0]
                counts[f"{kind} {shape}"] += 1
    return ", ".join(f"{n} {text}" for text, n in counts.items()) or "no collectives"


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
print("plain jit:", collectives(plain, *placed))
print("this one: ", collectives(best_five, *placed))
