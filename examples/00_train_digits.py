"""python train_digits.py 18: train a reader of digits for 18 epochs on all devices, then read batches of any size."""

import math
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from sklearn.datasets import load_digits

EPOCHS, BATCH = int(sys.argv[1]), 128
digits = load_digits()  # YOURS: the data
order = np.random.default_rng(0).permutation(len(digits.target))
images, labels = np.float32(digits.data[order] / 16), np.int32(digits.target[order])
train_x, train_y, test_x, test_y = (
    images[:1400],
    labels[:1400],
    images[1400:],
    labels[1400:],
)


def init(key, sizes=(64, 256, 128, 64, 10)):  # YOURS: the network
    keys, pairs = jax.random.split(key, len(sizes) - 1), zip(sizes, sizes[1:])
    drawn = [
        jax.random.normal(k, (n, m)) * (2 / n) ** 0.5 for k, (n, m) in zip(keys, pairs)
    ]
    return [{"w": w, "b": jnp.zeros(w.shape[1])} for w in drawn]


def predict(params, x, relu=jax.nn.relu):
    for layer in params[:-1]:
        x = relu(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def loss(params, x, y):
    return optax.softmax_cross_entropy_with_integer_labels(predict(params, x), y).mean()


rule = optax.sgd(0.1, momentum=0.9)  # YOURS: optax.adamw(1e-3)


@jax.jit
def step(params, state, x, y):
    updates, state = rule.update(jax.grad(loss)(params, x, y), state, params)
    return optax.apply_updates(params, updates), state


@jax.jit
def compiled_predict(params, x):
    print(f"compiling for {len(x)} images")  # Python runs only while JAX traces
    return predict(params, x)


def read(params, x):  # any number of images, few programs
    size = 2 ** (len(x) - 1).bit_length()
    padded = np.pad(x, ((0, size - len(x)), (0, 0)))
    return np.asarray(compiled_predict(params, padded))[: len(x)].argmax(axis=1)


n = math.gcd(BATCH, len(jax.devices()))
mesh = jax.make_mesh(
    (n,), ("data",), axis_types=(AxisType.Auto,), devices=jax.devices()[:n]
)
rows_split, whole = (
    NamedSharding(mesh, P("data")),
    NamedSharding(mesh, P()),
)  # lesson 02
params = jax.device_put(init(jax.random.key(1)), whole)
state, shuffle = rule.init(params), np.random.default_rng(1)
for _ in range(EPOCHS):
    order = shuffle.permutation(len(train_y))
    for i in range(0, len(order) - BATCH + 1, BATCH):
        rows = order[i : i + BATCH]
        x, y = jax.device_put((train_x[rows], train_y[rows]), rows_split)
        params, state = jax.block_until_ready(step(params, state, x, y))
in_numpy = jax.tree.map(np.asarray, params)
want = predict(in_numpy, test_x, relu=lambda x: np.maximum(x, 0)).argmax(axis=1)
assert all((read(params, test_x[:k]) == want[:k]).all() for k in range(1, 65)), (
    "not NumPy's"
)
right = (read(params, test_x) == test_y).sum()
print(
    f"{n} devices: {right} of {len(test_y)} right; 64 batch sizes read as NumPy reads them"
)
