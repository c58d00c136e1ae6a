"""python train_data_parallel.py 18: train on all devices, resuming after a restart.

Delete train_data_parallel.npz to start from the beginning. On several hosts, call
jax.distributed.initialize() first, and let all hosts read the same .npz file.
"""

import os
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from functools import partial

os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")  # emulated, without a GPU or TPU

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import AxisType, NamedSharding, reshard
from jax.sharding import PartitionSpec as P
from sklearn.datasets import load_digits
from tqdm import tqdm

cli = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
cli.add_argument("epochs", type=int, nargs="?", default=18)
EPOCHS, SAVED, TRAIN = cli.parse_args().epochs, "train_data_parallel.npz", 1400
if EPOCHS < 1:
    cli.error("the number of epochs must be at least 1")
mesh = jax.make_mesh((jax.device_count(),), ("data",), axis_types=(AxisType.Explicit,))
jax.set_mesh(mesh)
optimizer, BATCH = optax.sgd(0.1, momentum=0.9), 128 // mesh.size * mesh.size
digits = load_digits()  # YOURS: data, network, loss, optimizer
order = np.random.default_rng(0).permutation(len(digits.target))
images, labels = np.float32(digits.data[order] / 16), np.int32(digits.target[order])


def init(key, sizes=(64, 256, 128, 64, 10)):
    params, keys = [], jax.random.split(key, len(sizes) - 1)
    for k, n, m in zip(keys, sizes[:-1], sizes[1:], strict=True):
        w = jax.random.normal(k, (n, m)) * (2 / n) ** 0.5
        params.append({"w": w, "b": jnp.zeros(m)})
    return params, optimizer.init(params)


def predict(params, x):
    for layer in params[:-1]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def loss(params, x, y):
    losses = optax.softmax_cross_entropy_with_integer_labels(predict(params, x), y)
    return losses.mean()


@partial(jax.jit, donate_argnums=0)
def step(state, x, y):  # mentions no devices
    params, moments = state
    value, grads = jax.value_and_grad(loss)(params, x, y)
    updates, moments = optimizer.update(grads, moments, params)
    return (optax.apply_updates(params, updates), moments), value


def flat(tree):
    return np.concatenate([np.ravel(a) for a in jax.tree.leaves(jax.device_get(tree))])


def batches(epoch):  # the same on every host
    rows = np.random.default_rng(epoch).permutation(TRAIN)
    return rows[: TRAIN // BATCH * BATCH].reshape(-1, BATCH)


def place(rows):  # each host reads only the rows of its own devices
    def own_rows(index, a):  # the rows of one device
        return a[rows[index[0]]]

    for a in (images, labels, np.arange(len(images))):
        shape, part = (len(rows), *a.shape[1:]), partial(own_rows, a=a)
        yield jax.make_array_from_callback(shape, NamedSharding(mesh, P("data")), part)


most_reads = jax.jit(lambda a: jnp.bincount(reshard(a, P()), length=TRAIN).max())
key, first, checked = jax.random.key(1), 0, "no batch contains a row twice"
if os.path.exists(SAVED):
    first, *leaves = np.load(SAVED).values()
    if first >= EPOCHS:
        cli.error(f"{SAVED} has {first} epochs already: ask for more, or delete it")
    state = jax.tree.unflatten(jax.tree.structure(jax.eval_shape(init, key)), leaves)
else:
    state, rows = jax.device_get(jax.jit(init)(key)), batches(0)[0]
    x, y, _ = place(rows)
    with jax.default_matmul_precision("highest"):
        grad = jax.jit(jax.grad(loss))
        mine = flat(grad(jax.device_put(state[0], P()), x, y))
        with jax.set_mesh(
            jax.make_mesh((1,), ("data",), devices=jax.local_devices()[:1])
        ):
            true = flat(grad(state[0], images[rows], labels[rows]))
    assert abs(mine - true).max() < 1e-4 * abs(true).max(), "not one device's gradient"
    checked += ", and the gradient matches one device's"

state = jax.device_put(state, P())
for epoch in tqdm(range(int(first), EPOCHS), unit="epoch", disable=None):
    for rows in batches(epoch):
        x, y, read = place(rows)
        state, value = step(state, x, y)
        assert most_reads(read) == 1, "a row was read twice"
        value.block_until_ready()
    if jax.process_index() == 0:
        leaves = jax.tree.leaves(jax.device_get(state))
        np.savez("part.npz", epoch + 1, *leaves)
        os.replace("part.npz", SAVED)  # atomic: never leaves half a file

unseen = np.arange(TRAIN, len(images))
x, y, read = place(np.pad(unseen, (0, -len(unseen) % mesh.size)))  # to split evenly
real = jax.device_put(np.arange(read.size) < len(unseen), P("data"))
hits = jax.jit(lambda p: ((predict(p, x).argmax(1) == y) & real).sum())
print(f"epochs {first + 1} to {EPOCHS}: {hits(state[0])} of {len(unseen)} right")
print("checked:", checked)
