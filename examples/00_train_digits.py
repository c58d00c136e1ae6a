"""python train_digits.py 18: train a network, then classify batches of any size."""

from argparse import ArgumentParser, RawDescriptionHelpFormatter

import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_digits

cli = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
cli.add_argument("epochs", type=int, nargs="?", default=18)
EPOCHS, BATCH, TRAIN = cli.parse_args().epochs, 128, 1400
if EPOCHS < 1:
    cli.error("the number of epochs must be at least 1")
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
    losses = optax.softmax_cross_entropy_with_integer_labels(predict(params, x), y)
    return losses.mean()


optimizer = optax.sgd(0.1, momentum=0.9)  # YOURS: optax.adamw(1e-3)


@jax.jit
def step(params, state, x, y):
    updates, state = optimizer.update(jax.grad(loss)(params, x, y), state, params)
    return optax.apply_updates(params, updates), state


@jax.jit
def compiled_predict(params, x):
    print(f"compiling for batch size {len(x)}")  # Python runs only while JAX traces
    return predict(params, x)


def classify(params, x):  # pads the batch to a power of two, so few sizes compile
    size = 2 ** (len(x) - 1).bit_length()
    padded = np.pad(x, ((0, size - len(x)), (0, 0)))
    return np.asarray(compiled_predict(params, padded))[: len(x)].argmax(axis=1)


params = init(jax.random.key(1))
state, shuffle = optimizer.init(params), np.random.default_rng(1)
for _ in range(EPOCHS):
    rows = shuffle.permutation(TRAIN)[: TRAIN // BATCH * BATCH]
    for batch in rows.reshape(-1, BATCH):
        params, state = step(params, state, images[batch], labels[batch])

params, unseen = jax.device_get(params), images[TRAIN:]
in_numpy = predict(params, unseen, relu=lambda x: np.maximum(x, 0)).argmax(axis=1)
for k in range(1, 65):
    assert (classify(params, unseen[:k]) == in_numpy[:k]).all(), "NumPy disagrees"
right = (classify(params, unseen) == labels[TRAIN:]).sum()
print(f"{right} of {len(unseen)} right; 64 batch sizes read like NumPy")
