"""python train_digits.py 18: train a network, then read batches of any size."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_digits

EPOCHS, BATCH, TRAIN = int(sys.argv[1]), 128, 1400
digits = load_digits()  # YOURS: the data
order = np.random.default_rng(0).permutation(len(digits.target))
images, labels = np.float32(digits.data[order] / 16), np.int32(digits.target[order])


def init(key, sizes=(64, 256, 128, 64, 10)):  # YOURS: the network
    params, keys = [], jax.random.split(key, len(sizes) - 1)
    for k, n, m in zip(keys, sizes[:-1], sizes[1:], strict=True):
        w = jax.random.normal(k, (n, m)) * (2 / n) ** 0.5
        params.append({"w": w, "b": jnp.zeros(m)})
    return params


def predict(params, x, relu=jax.nn.relu):
    for layer in params[:-1]:
        x = relu(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def loss(params, x, y):
    each = optax.softmax_cross_entropy_with_integer_labels(predict(params, x), y)
    return each.mean()


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


params = init(jax.random.key(1))
state, shuffle = rule.init(params), np.random.default_rng(1)
for _ in range(EPOCHS):
    rows = shuffle.permutation(TRAIN)[: TRAIN // BATCH * BATCH]
    for batch in rows.reshape(-1, BATCH):
        params, state = step(params, state, images[batch], labels[batch])

params, unseen = jax.device_get(params), images[TRAIN:]
in_numpy = predict(params, unseen, relu=lambda x: np.maximum(x, 0)).argmax(axis=1)
for k in range(1, 65):
    assert (read(params, unseen[:k]) == in_numpy[:k]).all(), "not what NumPy reads"
right = (read(params, unseen) == labels[TRAIN:]).sum()
print(f"{right} of {len(unseen)} right; 64 batch sizes read like NumPy")
