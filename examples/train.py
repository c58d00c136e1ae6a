"""python train.py --steps 5: train on all devices of all processes, however started.

Slurm and TPU pods tell JAX the rest. By hand, add --coordinator HOST:PORT --processes 2
--id 0 (and --id 1 in the other). README.md, beside it, has a command for each way.
"""

import argparse
import zlib

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

BATCH, FEATURES, HIDDEN, RATE = 128, 64, 256, 0.1  # BATCH: rows of a step, in all


def join(coordinator, processes, process_id):
    """Meet the other processes. This comes first: JAX looks for devices only once."""
    if coordinator is not None:  # by hand: all is told, so search for no cluster
        told = (coordinator, processes, process_id)
        jax.distributed.initialize(*told, cluster_detection_method="deactivate")
        return
    try:
        jax.distributed.initialize()  # Slurm and TPU pods tell JAX all three
    except ValueError as error:  # no cluster was found: this process is alone
        if "coordinator_address should be defined" not in str(error):
            raise


def read(rows):  # YOURS: these rows of your files, and no others
    x = np.stack([np.random.default_rng([7, r]).normal(size=FEATURES) for r in rows])
    teacher = np.random.default_rng(7).normal(size=FEATURES) / np.sqrt(FEATURES)
    return x, np.tanh(x @ teacher)


def init(key):  # YOURS
    one, two = jax.random.split(key)
    w = jax.random.normal(one, (FEATURES, HIDDEN)) / np.sqrt(FEATURES)
    v = jax.random.normal(two, (HIDDEN,)) / np.sqrt(HIDDEN)
    return {"w": w, "b": jnp.zeros(HIDDEN), "v": v}


def loss_of(params, x, y):  # YOURS: the mean over the rows of all processes
    return jnp.mean((jnp.tanh(x @ params["w"] + params["b"]) @ params["v"] - y) ** 2)


@jax.jit
def train_step(params, x, y):  # x and y are split, so the compiler adds the all-reduce
    loss, grads = jax.value_and_grad(loss_of)(params, x, y)
    return jax.tree.map(lambda p, g: p - RATE * g, params, grads), loss


def check_rows(mine):
    """Did all processes together read each row of the batch once? All must call it."""
    marks = np.array([zlib.crc32(row.tobytes()) for row in mine], np.uint32)
    every = np.ravel(multihost_utils.process_allgather(marks))
    said = f"{every.size} rows were read, {len(np.unique(every))} different"
    assert every.size == len(np.unique(every)) == BATCH, said
    return said


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Train on all devices.")
    parser.add_argument("--coordinator", metavar="HOST:PORT", help="where process 0 is")
    parser.add_argument("--processes", type=int, help="how many there are")
    parser.add_argument("--id", type=int, help="which of them this is, from 0")
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args(arguments)
    by_hand = options.coordinator, options.processes, options.id
    if None in by_hand and by_hand != (None, None, None):
        parser.error("by hand takes all three: --coordinator, --processes and --id")
    join(*by_hand)

    devices, n, here = jax.device_count(), jax.process_count(), jax.process_index()
    say = print if here == 0 else lambda *_, **__: None  # one speaks, all compute
    if BATCH % devices:
        cut = f"A batch of {BATCH} rows cannot be cut in {devices} equal parts"
        raise SystemExit(f"{cut}: change BATCH in train.py.")
    say(f"processes: {n}, {jax.devices()[0].platform} devices: {devices}", flush=True)

    def rows_of(step):  # those that this process reads, and no other does
        first = step * BATCH + here * (BATCH // n)
        return range(first, first + BATCH // n)

    mesh = jax.make_mesh((devices,), ("data",), axis_types=(AxisType.Auto,))
    by_rows, whole = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
    key = jax.random.key(0)  # the same in all, and so are the parameters
    params = jax.jit(init, out_shardings=whole)(key)
    kind = params["w"].dtype
    digits = np.finfo(kind).precision - 1  # the last one depends on who adds up first
    for step in range(options.steps):
        parts = [part.astype(kind) for part in read(rows_of(step))]
        if step == 0:  # YOURS: once an epoch
            say(check_rows(parts[0]), flush=True)  # all check, one prints
        x, y = (jax.make_array_from_process_local_data(by_rows, p) for p in parts)
        params, loss = train_step(params, x, y)
        loss = float(loss)  # waits for the devices; the number is the same everywhere
        say(f"step {step:2}  loss {loss:.{digits}f}", flush=True)


if __name__ == "__main__":
    main()
