"""python resume.py run 12: take 12 steps; started again, go on from what was saved.

python resume.py run 12 9 kills itself with SIGKILL in the save of step 9: a rehearsal.
In a job of many processes (lesson 16) start each with MANY=1 before python.
"""

import os
import signal
import sys
import threading
import time
from pathlib import Path

os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")  # emulated, without a GPU or TPU

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

if os.environ.get("MANY"):  # before JAX looks for devices
    jax.distributed.initialize()
FOLDER, LAST = Path(sys.argv[1]).absolute(), int(sys.argv[2])
KILL = sys.argv[3] if len(sys.argv) > 3 else None
EVERY, KEEP, rule = 3, 2, optax.adam(1e-3)
mesh = jax.make_mesh((jax.device_count(),), ("data",), axis_types=(AxisType.Auto,))


def init():  # YOURS: all that the run is
    a, b, rest = jax.random.split(jax.random.key(17), 3)
    w1 = 0.18 * jax.random.normal(a, (64, 4096))
    params = {"w1": w1, "w2": 0.02 * jax.random.normal(b, (4096, 10))}
    key = jax.random.key_data(rest)
    moments = rule.init(params)
    return {"params": params, "moments": moments, "key": key, "position": jnp.int32(0)}


def loss_of(params, x, y, key):  # YOURS
    hidden = jax.nn.relu(x @ params["w1"])
    kept = jax.random.bernoulli(key, 0.8, hidden.shape)
    scores = jnp.where(kept, hidden / 0.8, 0) @ params["w2"]
    return optax.softmax_cross_entropy_with_integer_labels(scores, y).mean()


def batch(position, size=128):  # YOURS: the same examples for the same position
    x = np.float32(np.random.default_rng(position).normal(size=(size, 64)))
    return jax.device_put((x, x[:, :10].argmax(1)), NamedSharding(mesh, P("data")))


def wanted(a):  # rows over all devices if they divide, else whole on each of them
    split = a.ndim == 2 and a.shape[0] % mesh.size == 0
    sharding = NamedSharding(mesh, P("data") if split else P())
    return jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=sharding)


template = jax.tree.map(wanted, jax.eval_shape(init))
layout = jax.tree.map(lambda a: a.sharding, template)


@jax.jit
def step(state, x, y):
    key, now = jax.random.split(jax.random.wrap_key_data(state["key"]))
    loss, grads = jax.value_and_grad(loss_of)(state["params"], x, y, now)
    updates, moments = rule.update(grads, state["moments"])
    params = optax.apply_updates(state["params"], updates)
    key, position = jax.random.key_data(key), state["position"] + len(x)
    new = {"params": params, "moments": moments, "key": key, "position": position}
    return jax.lax.with_sharding_constraint(new, layout), loss


def kill_in_save():  # the rehearsal
    while not list(FOLDER.glob(f"{KILL}*")):  # until the folder of that step appears
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGKILL)


log = FOLDER.with_suffix(".losses")  # beside the folder: a step and its loss in a line
lines = log.read_text().splitlines() if log.exists() else []
told = {int(done): float.fromhex(loss) for done, loss in map(str.split, lines)}
if KILL:
    threading.Thread(target=kill_in_save, daemon=True).start()
options = ocp.CheckpointManagerOptions(max_to_keep=KEEP)
with ocp.CheckpointManager(FOLDER, options=options) as manager:
    done, again = manager.latest_step() or 0, []  # the newest one with its final name
    if done:
        state = manager.restore(done, args=ocp.args.StandardRestore(template))
    else:
        state = jax.jit(init, out_shardings=layout)()
    print(f"{mesh.size} devices go on after step {done}", flush=True)  # before a kill
    while done < LAST:
        state, loss = step(state, *batch(int(state["position"])))
        done, loss = done + 1, float(loss)  # this waits for the devices
        if done in told:  # it was computed before the crash, too
            assert np.isclose(loss, told[done], rtol=1e-3), f"step {done}: another run"
            again.append(done)
        elif jax.process_index() == 0:
            with log.open("a") as file:
                print(done, loss.hex(), file=file)
        if done % EVERY == 0 or done == LAST:
            manager.save(done, args=ocp.args.StandardSave(state))  # returns at once
print(f"step {done}: loss {loss:.4f}; saved: {sorted(manager.all_steps())}")
print("checked: losses of steps", again, "are those of before the crash")
