"""Provide lesson 00's handwritten digits, network and loss to the lessons that train this model on eight devices.

A test asserts that `init`, `predict` and `loss` are identical to those in lesson 00's cells.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np


def _read_digits() -> tuple[np.ndarray, np.ndarray]:
    """Return what `sklearn.datasets.load_digits(return_X_y=True)` returns: pixels (1797, 64) and digits (1797,).

    Read scikit-learn's file without importing scikit-learn, because the import takes 4 s of CPU time.
    """
    spec = importlib.util.find_spec("sklearn")
    for folder in spec.submodule_search_locations or () if spec else ():
        path = Path(folder, "datasets", "data", "digits.csv.gz")
        if path.is_file():
            table = np.loadtxt(path, delimiter=",")
            return table[:, :-1], table[:, -1].astype(int)
    from sklearn import datasets  # a release that stores the file elsewhere

    pixels, digits = datasets.load_digits(return_X_y=True)
    return np.asarray(pixels), np.asarray(digits)


def load():
    """Return the handwritten digits as two pairs (images, labels): 1,400 for training, then 397 for testing."""
    pixels, digits = _read_digits()
    order = np.random.default_rng(0).permutation(len(digits))
    images = (pixels[order] / 16).astype(np.float32)  # (1797, 64), from 0 to 1
    labels = digits[order].astype(np.int32)  # (1797,), from 0 to 9
    return (images[:1400], labels[:1400]), (images[1400:], labels[1400:])


def init(key, sizes=(64, 256, 128, 64, 10)):
    """Create parameters: a list of {'w': (in, out), 'b': (out,)}, one per layer."""
    params = []
    keys = jax.random.split(key, len(sizes) - 1)
    for k, n, m in zip(keys, sizes[:-1], sizes[1:], strict=True):
        w = jax.random.normal(k, (n, m)) * jnp.sqrt(2 / n)
        params.append({"w": w, "b": jnp.zeros(m)})
    return params


def predict(params, x):
    """Return the scores (batch, 10) of images (batch, 64)."""
    for layer in params[:-1]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def loss(params, x, y):
    """Return the mean cross-entropy of the scores and the labels y (batch,)."""
    log_p = jax.nn.log_softmax(predict(params, x))
    return -(jax.nn.one_hot(y, 10) * log_p).sum(axis=1).mean()


def batches(labels, seed, epochs, size=128):
    """Yield the row indices of each batch, (size,), in a different order every epoch. Drop incomplete batches."""
    rng = np.random.default_rng(seed)
    for _ in range(epochs):
        order = rng.permutation(len(labels))
        for start in range(0, len(labels) - size + 1, size):
            yield order[start : start + size]
