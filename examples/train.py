"""Train a small network on every device of every process, unchanged by hand, under Slurm, on Kubernetes and on a TPU
pod, on CPUs, GPUs and TPUs. README.md, beside it, has a command for each; it needs JAX and NumPy.

Copy it, and replace `read`, `init` and `loss_of` by your own.
"""

import argparse

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

BATCH, FEATURES, HIDDEN, RATE = 128, 64, 256, 0.1  # BATCH: rows of a step, on all devices together


def join(coordinator, processes, process_id):
    """Meet the other processes, if there are any. This comes first: JAX looks for devices only once."""
    if coordinator is not None:  # by hand: all is told, nothing is searched for
        jax.distributed.initialize(coordinator, processes, process_id, cluster_detection_method="deactivate")
        return
    try:
        jax.distributed.initialize()  # Slurm and TPU pods tell JAX all three
    except ValueError as error:
        if "coordinator_address should be defined" not in str(error):
            raise
        # JAX found no cluster: this process is alone.


def read(rows):
    """x (n, features) and y (n,) of these rows of the data, and of no others: here your files are read."""
    x = np.stack([np.random.default_rng([7, row]).normal(size=FEATURES) for row in rows])
    teacher = np.random.default_rng(7).normal(size=FEATURES) / np.sqrt(FEATURES)
    return x, np.tanh(x @ teacher)


def init(key):
    """Parameters: {'w': (features, hidden), 'b': (hidden,), 'v': (hidden,)}."""
    first, second = jax.random.split(key)
    w = jax.random.normal(first, (FEATURES, HIDDEN)) / np.sqrt(FEATURES)
    return {"w": w, "b": jnp.zeros(HIDDEN), "v": jax.random.normal(second, (HIDDEN,)) / np.sqrt(HIDDEN)}


def loss_of(params, x, y):
    """Mean squared error over the rows of all processes."""
    return jnp.mean((jnp.tanh(x @ params["w"] + params["b"]) @ params["v"] - y) ** 2)


@jax.jit
def train_step(params, x, y):
    """The program of one device: the compiler knows from the layout of x and y that they are cut (lesson 06)."""
    loss, grads = jax.value_and_grad(loss_of)(params, x, y)
    return jax.tree.map(lambda p, g: p - RATE * g, params, grads), loss


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Train on all devices of all processes.")
    parser.add_argument("--coordinator", metavar="HOST:PORT", help="by hand: where process 0 is, and a port free there")
    parser.add_argument("--processes", type=int, help="by hand: how many there are")
    parser.add_argument("--id", type=int, help="by hand: which of them this is, from 0")
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args(arguments)
    by_hand = options.coordinator, options.processes, options.id
    if None in by_hand and by_hand != (None, None, None):
        parser.error("by hand takes all three: --coordinator, --processes and --id")
    join(*by_hand)

    devices, processes, here = jax.device_count(), jax.process_count(), jax.process_index()
    if BATCH % devices:
        raise SystemExit(f"A batch of {BATCH} rows cannot be cut in {devices} equal parts: change BATCH in train.py.")
    if here == 0:  # one process speaks, all compute
        print(f"processes: {processes}, {jax.devices()[0].platform} devices: {devices}", flush=True)

    mesh = jax.make_mesh((devices,), ("data",), axis_types=(AxisType.Auto,))
    by_rows, whole = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
    params = jax.jit(init, out_shardings=whole)(jax.random.key(0))  # the same key and so the same values everywhere
    kind = params["w"].dtype
    digits = np.finfo(kind).precision - 1  # the last one depends on the order in which devices are added up
    share = BATCH // processes
    for step in range(options.steps):
        first = step * BATCH + here * share  # of the rows that this process reads, and no other process does
        mine = [part.astype(kind) for part in read(range(first, first + share))]
        x, y = (jax.make_array_from_process_local_data(by_rows, part) for part in mine)
        params, loss = train_step(params, x, y)
        loss = float(loss)  # each process waits for its devices, and holds the same number
        if here == 0:
            print(f"step {step:2}  loss {loss:.{digits}f}", flush=True)


if __name__ == "__main__":
    main()
