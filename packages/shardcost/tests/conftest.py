"""Start JAX with eight CPU devices, and hide an installed accelerator plugin from it."""

import os

os.environ["JAX_PLATFORMS"] = "cpu"

import pytest

jax = pytest.importorskip("jax")
jax.config.update("jax_num_cpu_devices", 8)
