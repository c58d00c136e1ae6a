"""Check simulated kernels (their sends, waits and deadlocks) against small manual calculations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P

from lesson_helpers.kernels.race_check import check_races, run_interpreted
from lesson_helpers.kernels.simulator import simulate
from lesson_helpers.kernels.timeline import draw_kernels
from utils.compat import race_detection
from utils.mesh import make_mesh

DMA = pltpu.SemaphoreType.DMA
X = np.arange(16, dtype=np.float32)


def program(
    kernel, shape=(2,), scratch=(DMA, DMA), interpret=None, barrier=False, sizes=(8,), names=("i",), memory=pl.ANY
):
    """Return a jitted program that runs the kernel on each device of a mesh, with one input and one output."""
    anywhere = pl.BlockSpec(memory_space=memory)
    options = {"compiler_params": pltpu.CompilerParams(collective_id=0)} if barrier else {}
    call = pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct(shape, jnp.float32),
        in_specs=[anywhere],
        out_specs=anywhere,
        scratch_shapes=list(scratch),
        interpret=interpret or pltpu.InterpretParams(),
        **options,
    )
    spec = P(names)
    mesh = make_mesh(sizes, names)
    return jax.jit(jax.shard_map(call, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False))


def shift(x, o, sent, arrived, first=lambda me: True, waits="sr"):
    """Copy x to the right neighbour's o, from the devices for which `first` is true.

    `waits` contains "s" to wait until the copy is sent, and "r" to wait until a copy has arrived.
    """
    me = jax.lax.axis_index("i")
    copy = pltpu.make_async_remote_copy(x, o, sent, arrived, device_id=((me + 1) % 8,))

    @pl.when(first(me))
    def _():
        copy.start()
        if "s" in waits:
            copy.wait_send()

    if "r" in waits:
        copy.wait_recv()


def concatenate_results(simulation):
    return np.concatenate([result[0] for result in simulation.results])


def test_a_copy_to_the_right_is_a_roll_when_interpreted_or_simulated():
    np.testing.assert_array_equal(program(shift)(X), np.roll(X, 2))
    simulation = simulate(program(shift), X)
    np.testing.assert_array_equal(concatenate_results(simulation), np.roll(X, 2))
    assert simulation.end == 4  # all copies are sent at the same time
    assert [simulation.bytes_sent(k) for k in range(8)] == [8] * 8  # two float32 elements
    assert simulation.copies == {(k, (k + 1) % 8): 1 for k in range(8)}
    assert (simulation.stuck, simulation.unconsumed, simulation.early_sends) == ({}, {}, set())


def test_a_late_device_delays_only_its_right_neighbour():
    simulation = simulate(program(shift), X, late={3: 10})
    assert simulation.end == 14
    longest = {
        k: max(e.end - e.start for e in simulation.events if e.kind == "wait" and e.device == k) for k in range(8)
    }
    # Device 4 finishes sending its own copy at 4, and then waits for device 3's copy until 14.
    assert longest == {0: 4, 1: 4, 2: 4, 3: 4, 4: 10, 5: 4, 6: 4, 7: 4}
    assert [e.peer for e in simulation.events if e.end == 14 and e.device == 4] == [3]
    assert simulation.early_sends == {(2, 3)}


def test_waiting_for_a_copy_that_no_device_sends_never_ends():
    simulation = simulate(program(lambda *refs: shift(*refs, first=lambda me: me < 7)), X)
    assert simulation.stuck == {0: "a copy to arrive"}
    assert simulation.results[0] is None
    assert simulation.copies[7, 0] == 0


@pytest.mark.parametrize(
    ("waits", "left", "right"),
    [("s", "a copy to arrive", False), ("r", "its own copy to be sent", True)],
)
def test_a_missing_wait_leaves_a_nonzero_semaphore(waits, left, right):
    kernel = program(lambda *refs: shift(*refs, waits=waits))
    simulation = simulate(kernel, X)
    assert simulation.unconsumed == {k: [left] for k in range(8)}
    assert np.isfinite(np.asarray(run_interpreted(kernel, X).result)).all() == right


def ring(x, o, buffers, local, sent, arrived, free=None):
    """Gather all pieces in a ring, using two buffers. If `free` is given, wait for the right neighbour's buffer."""
    me = jax.lax.axis_index("i")
    pltpu.async_copy(x, buffers.at[0], local).wait()
    pltpu.async_copy(x, o.at[me], local).wait()
    for step in range(7):
        now, then = step % 2, (step + 1) % 2
        if free is not None and step > 0:
            pl.semaphore_wait(free, 1)
        copy = pltpu.make_async_remote_copy(
            buffers.at[now], buffers.at[then], sent.at[now], arrived.at[then], device_id=((me + 1) % 8,)
        )
        copy.start()
        copy.wait()
        pltpu.async_copy(buffers.at[then], o.at[(me - step - 1) % 8], local).wait()
        if free is not None and step < 6:
            pl.semaphore_signal(free, 1, device_id=((me - 1) % 8,))


RING = (pltpu.VMEM((2, 2), jnp.float32), DMA, DMA((2,)), DMA((2,)))
GATHERED = np.tile(X.reshape(8, 2), (8, 1))


def test_a_buffer_overwritten_too_early_is_a_race():
    np.testing.assert_array_equal(concatenate_results(simulate(program(ring, (8, 2), RING), X)), GATHERED)
    late = concatenate_results(simulate(program(ring, (8, 2), RING), X, late={3: 40}))
    assert (late != GATHERED).any()
    run = run_interpreted(program(ring, (8, 2), RING, race_detection()), X)
    assert run.races
    assert "write in copy.start()" in str(run)  # the report quotes a line of code that readers can find


def test_a_ring_that_waits_for_a_free_buffer_is_correct():
    scratch = (*RING, pltpu.SemaphoreType.REGULAR)
    for late in ({}, {3: 40}, {0: 7, 5: 3}):
        simulation = simulate(program(ring, (8, 2), scratch), X, late=late)
        np.testing.assert_array_equal(concatenate_results(simulation), GATHERED)
        assert not simulation.unconsumed
        assert simulation.bytes_sent() == 7 * 8
        # Each device's memory contains x, o, and two buffers of two elements.
        assert simulation.memory[0] == simulation.memory[7] == 8 + 8 * 8 + 2 * 8
    run = run_interpreted(program(ring, (8, 2), scratch, race_detection()), X)
    np.testing.assert_array_equal(run.result, GATHERED)
    assert (run.races, run.nonzero_semaphores, str(run)) == ((), 0, "no race found")


def test_loops_branches_and_indices_are_simulated():
    def kernel(x, o, sent, arrived):
        me = jax.lax.axis_index("i")
        o[...] = jnp.zeros((4, 2))

        def body(k, total):
            @pl.when(k % 2 == 1)
            def _():
                o[pl.ds(k, 1)] = (x[...] * k)[None]

            return total + k

        total = jax.lax.fori_loop(0, 4, body, 0)  # 0 + 1 + 2 + 3 = 6
        o[0] = jax.lax.cond(me > 3, lambda: x[...] + total, lambda: x[...])
        steps = jax.lax.while_loop(lambda k: k < me, lambda k: k + 2, 0)
        o[2, 0] = steps.astype(jnp.float32)

    simulation = simulate(program(kernel, (4, 2), memory=pltpu.VMEM), X)
    np.testing.assert_array_equal(program(kernel, (4, 2), memory=pltpu.VMEM)(X), concatenate_results(simulation))
    for k in range(8):
        mine = X[2 * k : 2 * k + 2]
        want = [mine + 6 * (k > 3), mine, [k + k % 2, 0], 3 * mine]
        np.testing.assert_array_equal(simulation.results[k][0], want)


@jax.custom_vjp
def _jitted_double(x):
    return x @ x @ x


_jitted_double.defvjp(lambda x: (_jitted_double(x), None), lambda _, g: (g,))


@pytest.mark.parametrize(
    ("computes", "products"),
    [
        (lambda x: x @ x, 1),
        (jax.jit(lambda x: x @ x), 1),
        (jax.jit(lambda x: jax.jit(lambda y: y @ y)(x) @ x), 2),
        (jax.jit(lambda x: jax.lax.fori_loop(0, 3, lambda _, y: y @ x, x)), 3),
        (jax.checkpoint(lambda x: x @ x), 1),
        (_jitted_double, 2),
        (jax.nn.relu, 0),
    ],
    ids=["plain", "jit", "jit in jit", "loop in jit", "checkpoint", "custom rule", "no product"],
)
def test_a_product_costs_the_same_under_a_jit_inside_the_kernel(computes, products):
    def kernel(x, o):
        o[...] = computes(x[...])

    matrices = np.arange(32, dtype=np.float32).reshape(16, 2)  # 2 x 2 on each device
    simulation = simulate(program(kernel, (2, 2), scratch=(), memory=pltpu.VMEM), matrices)
    assert simulation.end == 4 * products
    for mine, part in zip(simulation.results, matrices.reshape(8, 2, 2), strict=True):
        powers = {k: np.linalg.matrix_power(part, k + 1) for k in (0, 1, 2, 3)}
        np.testing.assert_array_equal(mine[0], powers[products])


def test_durations_of_a_slow_device():
    def kernel(x, o):
        o[...] = jnp.dot(x[...], x[...])

    simulation = simulate(
        program(kernel, (2, 2), (), memory=pltpu.VMEM), np.ones((16, 2), np.float32), slow={3: 5.5}, product=2.5
    )
    assert [(e.device, e.end) for e in simulation.events if e.end != 2.5] == [(3, 5.5)]
    assert simulation.end == 5.5


def test_check_races_builds_the_program_with_the_race_detector():
    assert check_races(lambda interpret: program(shift, interpret=interpret), X).races == ()


def test_a_delayed_copy_is_overtaken():
    """Test a kernel in which each device sends two copies of one element each to the right.

    If both use the same semaphore, the first wait ends when either copy has arrived.
    """

    def kernel(x, o, kept, sent, arrived, local, apart):
        right = ((jax.lax.axis_index("i") + 1) % 8,)
        for k in (0, 1):
            one = pl.ds(k, 1)
            semaphore = arrived.at[k if apart else 0]
            copy = pltpu.make_async_remote_copy(x.at[one], kept.at[one], sent, semaphore, device_id=right)
            copy.start()
            copy.wait_send()
        for k in (0, 1):
            one = pl.ds(k, 1)
            semaphore = arrived.at[k if apart else 0]
            pltpu.make_async_remote_copy(x.at[one], kept.at[one], sent, semaphore, device_id=right).wait_recv()
            pltpu.async_copy(kept.at[one], o.at[one], local).wait()

    scratch = (pltpu.VMEM((2,), jnp.float32), DMA, DMA((2,)), DMA)
    for apart in (True, False):
        played = program(lambda *refs, apart=apart: kernel(*refs, apart), scratch=scratch)
        np.testing.assert_array_equal(concatenate_results(simulate(played, X)), np.roll(X, 2))
        simulation = simulate(played, X, arrival_delays={(2, 3, 0): 40})
        want = np.roll(X, 2)
        want[6] = want[6] if apart else np.nan  # on one semaphore, device 3 reads before the copy arrives
        np.testing.assert_array_equal(concatenate_results(simulation), want)
        assert (simulation.stuck, simulation.unconsumed) == ({}, {})
        assert simulation.end == (46 if apart else 45)  # sent at 4, arrived at 44; a local copy takes 1 tick


def test_device_ids_on_a_mesh_with_two_axes():
    def kernel(x, o, sent, arrived):
        row, column = jax.lax.axis_index("a"), jax.lax.axis_index("b")
        copy = pltpu.make_async_remote_copy(x, o, sent, arrived, device_id=(row, (column + 1) % 4))
        copy.start()
        copy.wait()

    simulation = simulate(program(kernel, sizes=(2, 4), names=("a", "b")), X)
    np.testing.assert_array_equal(concatenate_results(simulation), np.roll(X.reshape(2, 4, 2), 1, 1).ravel())


def test_an_earlier_simulation_on_another_mesh_has_no_effect():
    """Test that a simulation isn't affected by arrays that JAX cached during an earlier one.

    JAX may cache an eagerly computed array whose type refers to the first program's mesh. The second program's
    literals refer to its own mesh, so they can't be combined with such an array.
    """
    for sizes, names, times in (((2, 4), ("a", "b"), 1), ((8,), ("i",), 2)):

        def kernel(x, o, name=names[-1], times=times):
            place = jax.lax.axis_index(name)
            for _ in range(times):
                place = place << 1  # no other test uses a bit shift, so the first program here compiles it
            o[...] = x[...] + place.astype(jnp.float32)

        simulation = simulate(program(kernel, sizes=sizes, names=names, scratch=(), memory=pltpu.VMEM), X)
        places = np.arange(8) % sizes[-1] * 2**times
        np.testing.assert_array_equal(concatenate_results(simulation), X + np.repeat(places, 2))


def test_errors_of_programs_that_cannot_be_simulated():
    def far(x, o, sent, arrived):
        o[...] = x[...]

    with pytest.raises(NotImplementedError, match="can only be copied"):
        simulate(program(far), X)

    def outside(x, o, sent, arrived):
        pltpu.async_remote_copy(x, o, sent, arrived, device_id=(jax.lax.axis_index("i") + 1,)).wait()

    with pytest.raises(IndexError, match="there is no device 8"):
        simulate(program(outside), X)

    spec = pl.BlockSpec((1,), lambda i: (i,))
    shape = jax.ShapeDtypeStruct((2,), jnp.float32)
    call = pl.pallas_call(lambda x, o: None, grid=(2,), in_specs=[spec], out_specs=spec, out_shape=shape)
    mapped = jax.shard_map(call, mesh=make_mesh((8,), ("i",)), in_specs=P("i"), out_specs=P("i"), check_vma=False)
    with pytest.raises(NotImplementedError, match="grid"):
        simulate(mapped, X)


def test_the_description_names_the_devices_that_wait():
    late = simulate(program(shift), X, late={3: 10})
    drawn = draw_kernels({"late": late}, devices=(3, 4))
    assert "device 4 sends once, waits 14 ticks, longest for device 3, from 4 to 14" in drawn.alt
    assert "device 5" not in drawn.alt
    assert "everything is done after 14 µs" in draw_kernels({"late": late}, unit="µs").alt
    with pytest.raises(ValueError, match="nothing to draw"):
        draw_kernels({})
