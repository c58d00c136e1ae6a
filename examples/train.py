"""python train.py --steps 5: train on all devices of all processes.

JAX finds the other processes by itself under Slurm and on TPU pods. To start two by
hand, add --coordinator HOST:PORT --processes 2 --id 0 to one, and the same with --id 1
to the other. README.md, in the same folder, has the command for each way.
"""

import zlib
from argparse import ArgumentParser, RawDescriptionHelpFormatter

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

BATCH, FEATURES, HIDDEN, RATE = 128, 64, 256, 0.1  # BATCH: rows of all processes


def join(coordinator, processes, process_id):
    """Join the other processes. Call this first: JAX looks for devices only once."""
    if coordinator is not None:  # started by hand: don't search for a cluster
        job = (coordinator, processes, process_id)
        jax.distributed.initialize(*job, cluster_detection_method="deactivate")
        return
    try:
        jax.distributed.initialize()  # Slurm and TPU pods supply all three
    except ValueError as error:  # no cluster: this process runs alone
        if "coordinator_address should be defined" not in str(error):
            raise


def read(rows):  # YOURS: read only these rows of your files
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
    """Check that each row of the batch was read once. Every process must call this."""
    marks = np.array([zlib.crc32(row.tobytes()) for row in mine], np.uint32)
    every = np.ravel(multihost_utils.process_allgather(marks))
    message = f"{every.size} rows were read, {len(np.unique(every))} different"
    assert every.size == len(np.unique(every)) == BATCH, message
    return message


def main(arguments=None):
    raw = RawDescriptionHelpFormatter
    cli = ArgumentParser(description=__doc__, formatter_class=raw)
    cli.add_argument("--coordinator", metavar="HOST:PORT", help="process 0's address")
    cli.add_argument("--processes", type=int, help="the number of processes")
    cli.add_argument("--id", type=int, help="the index of this process, from 0")
    cli.add_argument("--steps", type=int, default=20)
    options = cli.parse_args(arguments)
    if options.steps < 1:
        cli.error("the number of steps must be at least 1")
    by_hand = options.coordinator, options.processes, options.id
    if None in by_hand and by_hand != (None, None, None):
        cli.error("by hand takes all three: --coordinator, --processes and --id")
    if options.processes is not None and not 0 <= options.id < options.processes:
        cli.error("--id must be from 0 to one less than --processes")
    join(*by_hand)

    devices, n, here = jax.device_count(), jax.process_count(), jax.process_index()
    say = print if here == 0 else lambda *_, **__: None  # only process 0 prints
    if BATCH % devices:
        uneven = f"{devices} devices cannot split a batch of {BATCH} rows evenly"
        raise SystemExit(f"{uneven}: change BATCH in train.py.")
    say(f"processes: {n}, {jax.devices()[0].platform} devices: {devices}", flush=True)

    def rows_of(step):  # the rows that only this process reads
        first = step * BATCH + here * (BATCH // n)
        return range(first, first + BATCH // n)

    mesh = jax.make_mesh((devices,), ("data",), axis_types=(AxisType.Auto,))
    by_rows, replicated = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
    key = jax.random.key(0)  # the same in every process, and so are the parameters
    params = jax.jit(init, out_shardings=replicated)(key)
    kind = params["w"].dtype
    digits = np.finfo(kind).precision - 1  # the last depends on the order of the sum
    for step in range(options.steps):
        parts = [part.astype(kind) for part in read(rows_of(step))]
        if step == 0:  # YOURS: once an epoch
            say(check_rows(parts[0]), flush=True)  # every process checks, one prints
        x, y = (jax.make_array_from_process_local_data(by_rows, p) for p in parts)
        params, loss = train_step(params, x, y)
        loss = float(loss)  # waits for the devices; the same number everywhere
        say(f"step {step:2}  loss {loss:.{digits}f}", flush=True)


if __name__ == "__main__":
    main()
