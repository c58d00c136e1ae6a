"""Provide unusual solutions to the exercises of lesson 17."""

import pickle
import re
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from exercises import ex17


def with_trailing(saved, mesh):
    """Give each spec an entry for every axis, and each shape as a list."""
    template = {}
    for name, (shape, dtype) in saved.items():
        spec = [None] * len(shape)
        axis = next((i for i, size in enumerate(shape) if not size % mesh.devices.size), None)
        if axis is not None:
            spec[axis] = tuple(mesh.shape)
        template[name] = jax.ShapeDtypeStruct(list(shape), jnp.dtype(dtype), sharding=NamedSharding(mesh, P(*spec)))
    return template


def by_leaves(saved, mesh):
    def make_leaf(pair):
        shape, dtype = pair
        [*axes] = np.flatnonzero(np.array(shape, int) % mesh.size == 0)
        spec = P(*[mesh.axis_names if i == axes[0] else None for i in range(axes[0] + 1)]) if axes else P(None)
        spec = P() if not shape else spec
        return jax.eval_shape(lambda: jnp.zeros(shape, dtype)).update(sharding=NamedSharding(mesh, spec))

    return jax.tree.map(make_leaf, saved, is_leaf=lambda x: isinstance(x, tuple))


def by_bytes(last, every, store, fresh, step, batch):
    done = max(store) if store else 0
    state, position = pickle.loads(store[done]) if store else [fresh(), 0]
    for i in range(done + 1, last + 1):
        examples, position = batch(position)
        step(state, examples)
        if not i % every:
            store[i] = pickle.dumps([state, position])


def recursive(last, every, store, fresh, step, batch):
    """Train until the next save and then recurse. Steps after the last multiple of `every` aren't saved."""
    done = sorted(store)[-1] if store else 0
    saved, position = store.get(done, (fresh(), 0))
    state = jax.tree.map(np.array, saved)
    for _ in range(min(every, last - done)):
        examples, position = batch(position)
        step(state, examples)
    if done + every <= last:
        store[done + every] = state, position
        recursive(last, every, store, fresh, step, batch)


def by_count(files):
    parts = {name.split("_of_")[0] + " " + name.split("_of_")[1] for name in files if not name.endswith(".tmp")}
    counted = Counter(re.sub(r"/part_\d+ ", " ", part) for part in parts)
    return max((int(save.split()[0]) for save, n in counted.items() if n == int(save.split()[1])), default=None)


def by_sorting(files):
    for step in sorted({int(name.partition("/")[0]) for name in files}, reverse=True):
        for n in range(1, len(files) + 1):
            if all(f"{step}/part_{i}_of_{n}" in files for i in range(n)):
                return np.int32(step)
    return None


ALTERNATIVES = {
    ex17.template_of: [with_trailing, by_leaves],
    ex17.train_on: [by_bytes, recursive],
    ex17.newest_complete: [by_count, by_sorting],
}
