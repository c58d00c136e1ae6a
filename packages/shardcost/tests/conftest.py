"""Configure JAX with eight CPU devices, and prevent it from using an installed accelerator plugin."""

import os

os.environ["JAX_PLATFORMS"] = "cpu"

import pytest

jax = pytest.importorskip("jax")
jax.config.update("jax_num_cpu_devices", 8)
