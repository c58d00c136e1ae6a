"""python resume.py run 12: train for 12 steps, resuming from a checkpoint.

As a rehearsal, python resume.py run 12 9 kills itself while it saves step 9. In a job
of many processes (lesson 16), set MANY=1 in the environment of each.
"""

import os
import signal
import threading
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from pathlib import Path

os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")  # emulated, without a GPU or TPU

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

cli = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
cli.add_argument("folder", type=Path, nargs="?", default=Path("run"))
cli.add_argument("last", type=int, nargs="?", default=12)
cli.add_argument("kill", type=int, nargs="?")
FOLDER, LAST, KILL = vars(cli.parse_args()).values()
FOLDER, EVERY, KEEP, optimizer = FOLDER.absolute(), 3, 2, optax.adam(1e-3)
if LAST < 1 or KILL not in (None, LAST, *range(EVERY, LAST, EVERY)):
    cli.error(f"last must be at least 1; kill, last or a multiple of {EVERY} below it")
if os.environ.get("MANY"):  # before JAX looks for devices
    jax.distributed.initialize()
mesh = jax.make_mesh((jax.device_count(),), ("data",), axis_types=(AxisType.Auto,))


def init():  # YOURS: the whole state of the run
    a, b, rest = jax.random.split(jax.random.key(17), 3)
    w1 = 0.18 * jax.random.normal(a, (64, 4096))
    params = {"w1": w1, "w2": 0.02 * jax.random.normal(b, (4096, 10))}
    key = jax.random.key_data(rest)
    moments = optimizer.init(params)
    return {"params": params, "moments": moments, "key": key, "position": jnp.int32(0)}


def loss_of(params, x, y, key):  # YOURS
    hidden = jax.nn.relu(x @ params["w1"])
    kept = jax.random.bernoulli(key, 0.8, hidden.shape)
    scores = jnp.where(kept, hidden / 0.8, 0) @ params["w2"]
    return optax.softmax_cross_entropy_with_integer_labels(scores, y).mean()


def batch(position, size=128):  # YOURS: the same examples for the same position
    x = np.float32(np.random.default_rng(position).normal(size=(size, 64)))
    return jax.device_put((x, x[:, :10].argmax(1)), NamedSharding(mesh, P("data")))


def abstract(a):  # split by rows if they divide evenly, else replicated
    split = a.ndim == 2 and a.shape[0] % mesh.size == 0
    sharding = NamedSharding(mesh, P("data") if split else P())
    return jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=sharding)


template = jax.tree.map(abstract, jax.eval_shape(init))
shardings = jax.tree.map(lambda a: a.sharding, template)


@jax.jit
def step(state, x, y):
    key, now = jax.random.split(jax.random.wrap_key_data(state["key"]))
    loss, grads = jax.value_and_grad(loss_of)(state["params"], x, y, now)
    updates, moments = optimizer.update(grads, state["moments"])
    params = optax.apply_updates(state["params"], updates)
    key, position = jax.random.key_data(key), state["position"] + len(x)
    new = {"params": params, "moments": moments, "key": key, "position": position}
    return jax.lax.with_sharding_constraint(new, shardings), loss


def kill_in_save():  # for the rehearsal
    while not list(FOLDER.glob(f"{KILL}*")):  # until that step's folder appears
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGKILL)


log = FOLDER.with_suffix(".losses")  # a line for each step and its loss
lines = log.read_text().splitlines() if log.exists() else []
logged = {int(done): float.fromhex(loss) for done, loss in map(str.split, lines)}
if KILL:
    threading.Thread(target=kill_in_save, daemon=True).start()
options = ocp.CheckpointManagerOptions(max_to_keep=KEEP)
with ocp.CheckpointManager(FOLDER, options=options) as manager:
    done, again = manager.latest_step() or 0, []  # the newest complete checkpoint
    if done >= LAST:
        cli.error(f"{FOLDER.name} has {done} steps already: ask for more, or delete it")
    if done:
        state = manager.restore(done, args=ocp.args.StandardRestore(template))
    else:
        state = jax.jit(init, out_shardings=shardings)()
    count = f"{mesh.size} device{'s' * (mesh.size > 1)}"
    print(f"training on {count}, from step {done + 1}", flush=True)  # before a kill
    while done < LAST:
        state, loss = step(state, *batch(int(state["position"])))
        done, loss = done + 1, float(loss)  # this waits for the devices
        if done in logged:  # computed before the crash, too
            assert np.isclose(loss, logged[done], rtol=1e-3), f"step {done} differs"
            again.append(done)
        elif jax.process_index() == 0:
            with log.open("a") as file:
                print(done, loss.hex(), file=file)
        if done % EVERY == 0 or done == LAST:
            manager.save(done, args=ocp.args.StandardSave(state))  # returns at once
print(f"step {done}: loss {loss:.4f}; saved: {sorted(manager.all_steps())}")
if again:
    print("checked: losses of steps", again, "match those from before the crash")
