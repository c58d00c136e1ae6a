"""Test `from_hlo` on hand-written program texts, with constructs that compilers emit or might emit."""

from __future__ import annotations

import time

import pytest
from shardcost import UnsupportedHloError, from_hlo, loops
from shardcost.groups import parse_groups

TEXT = """HloModule m, is_scheduled=true, num_partitions=8

ENTRY %main (p: f32[8,4]) -> f32[8,4] {
  %p = f32[8,4]{1,0} parameter(0)
  ROOT %r = f32[8,4]{1,0} LINE
}
"""


# This is a loop as the TPU compiler writes it, with a copy of its counter in a separate memory space. `loop` replaces
# START, NEXT and TEST.
LOOP = """HloModule m, is_scheduled=true, num_partitions=8

%step (s: s32[]) -> s32[] {
  %s = s32[] parameter(0)
  %four = s32[] constant(4)
  ROOT %more = s32[] add(%four, %s)
}

%both (r: s32[], q: s32[]) -> (s32[], s32[]) {
  %r = s32[] parameter(0)
  %q = s32[] parameter(1)
  %five = s32[] constant(5)
  %less = s32[] subtract(%r, %five)
  ROOT %pair = (s32[], s32[]) tuple(%q, %less)
}

%below (l: s32[], h: s32[]) -> pred[] {
  %l = s32[] parameter(0)
  %h = s32[] parameter(1)
  ROOT %test = pred[] compare(%h, %l), direction=GT
}

%body (b: (s32[], f32[4], s32[])) -> (s32[], f32[4], s32[]) {
  %b = (s32[]{:T(128)}, f32[4]{0:T(256)}, s32[]{:T(128)}) parameter(0)
  %i = s32[]{:T(128)} get-tuple-element(%b), index=0
  %j = s32[]{:T(128)S(6)} copy(%i)
  %x = f32[4]{0:T(256)} get-tuple-element(%b), index=1
  %kept = s32[]{:T(128)} get-tuple-element(%b), index=2
  %one = s32[]{:T(128)} constant(1)
  %three = s32[]{:T(128)} constant(3)
  %twice = s32[] add(%j, %j)
  %fused = (s32[], s32[]) fusion(%j, %kept), kind=kLoop, calls=%both
  %sum = f32[4]{0:T(256)} all-reduce(%x), channel_id=1, replica_groups=[1,8]<=[8], to_apply=%add
  %next = s32[]{:T(128)} NEXT
  ROOT %t = (s32[]{:T(128)}, f32[4]{0:T(256)}, s32[]{:T(128)}) tuple(%next, %sum, %kept)
}

%condition (c: (s32[], f32[4], s32[])) -> pred[] {
  %c = (s32[]{:T(128)}, f32[4]{0:T(256)}, s32[]{:T(128)}) parameter(0)
  %k = s32[]{:T(128)} get-tuple-element(%c), index=0
  %limit = s32[]{:T(128)} get-tuple-element(%c), index=2
  %stop = s32[]{:T(128)} constant(24)
  %double = s32[] add(%k, %k)
  ROOT %lt = pred[]{:T(512)} TEST
}

ENTRY %main (p: f32[4], n: s32[]) -> (s32[], f32[4], s32[]) {
  %p = f32[4]{0:T(256)} parameter(0)
  %n = s32[]{:T(128)} parameter(1)
  %zero = s32[]{:T(128)} constant(START)
  %start = s32[]{:T(128)} copy(%zero)
  %eleven = s32[]{:T(128)} constant(11)
  %all = (s32[]{:T(128)}, f32[4]{0:T(256)}, s32[]{:T(128)}) tuple(%start, %p, %eleven)
  ROOT %w = (s32[]{:T(128)}, f32[4]{0:T(256)}, s32[]{:T(128)}) while(%all), condition=%condition, body=%body
}
"""
BELOW_24 = "compare(%k, %stop), direction=LT"


def loop(start, following, test):
    """Return LOOP with the given start and next value of its counter, and the given condition."""
    return LOOP.replace("START", str(start)).replace("NEXT", following).replace("TEST", test)


@pytest.mark.parametrize(
    ("start", "following", "test", "iterations"),
    [
        (0, "add(%j, %one)", BELOW_24, 24),
        (30, "add(%j, %one)", BELOW_24, 0),
        (-1, "add(%three, %j)", BELOW_24, 9),  # -1, 2, ... 23
        (0, "fusion(%i), kind=kLoop, calls=%step", BELOW_24, 6),
        (0, "fusion(%i), kind=kLoop, calls=%step", "compare(%k, %stop), direction=LE", 7),
        (0, "fusion(%i), kind=kLoop, calls=%step", "fusion(%k, %stop), kind=kLoop, calls=%below", 6),
        (99, "get-tuple-element(%fused), index=1", "compare(%k, %stop), direction=GE", 16),  # 99, 94, ... 24
        (99, "get-tuple-element(%fused), index=1", "compare(%k, %stop), direction=NE", 15),
        (0, "add(%j, %one)", "compare(%k, %limit), direction=LT", 11),  # the loop doesn't change the limit
        (0, "add(%j, %kept)", BELOW_24, 3),  # 0, 11, 22
        (0, "add(%j, %one)", "compare(%double, %stop), direction=LT", 12),
        (0, "add(%j, %one)", "compare(%stop, %double), direction=GT", 12),
        (0, "subtract(%j, %one)", BELOW_24, None),  # doesn't end within 2**31 iterations
        (0, "subtract(%one, %j)", BELOW_24, None),  # 0, 1, 0, 1, ... endless
        (0, "add(%j, %one)", "compare(%double, %k), direction=LT", 0),
        (0, "add(%j, %three)", "compare(%k, %stop), direction=NE", 8),
        (1, "add(%j, %three)", "compare(%k, %stop), direction=NE", None),  # doesn't end before the counter overflows
        (24, "add(%j, %one)", "compare(%k, %stop), direction=EQ", 1),
        (0, "add(%twice, %one)", BELOW_24, 5),  # 0, 1, 3, 7, 15
        (0, "multiply(%j, %j)", BELOW_24, None),  # 0, 0, ... endless
        (2, "multiply(%j, %j)", BELOW_24, 3),  # 2, 4, 16
        (0, "get-tuple-element(%fused), index=0", BELOW_24, None),  # 0, 11, 11, ... endless
        (0, "convert(%x)", BELOW_24, None),  # depends on the data
        (0, "partition-id()", BELOW_24, None),  # depends on the device
        (0, "shift-left(%j, %one)", BELOW_24, None),  # isn't among the operations that can be evaluated
        (0, "add(%j, %one)", "is-finite(%k)", None),
        (2**31 - 9, "fusion(%i), kind=kLoop, calls=%step", "compare(%k, %stop), direction=GT", 3),  # then overflows
    ],
)
def test_trip_counts(start, following, test, iterations, monkeypatch):
    """Test loops in which each iteration sums 16 bytes over eight devices, which sends 2 (7/8) 16 = 28 bytes."""
    monkeypatch.setattr(loops, "MAX_ITERATIONS", 1000)
    text = loop(start, following, test)
    if iterations is None:
        with pytest.raises(UnsupportedHloError, match="all-reduce in the loop at w, whose trip count"):
            from_hlo(text)
        assert from_hlo(text, trip_counts=7).bytes_sent == 7 * 28
        assert from_hlo(text, trip_counts={"w": 7}).bytes_sent == 7 * 28
    else:
        assert [(c.execution_count, c.bytes_sent) for c in from_hlo(text)] == [(iterations, iterations * 28)] * bool(
            iterations
        )


# The TPU compiler splits a 64-bit counter like this one into two 32-bit counters. The loop adds 1 to the low counter,
# and carries if that counter overflows.
SPLIT_LOOP = """HloModule m, is_scheduled=true, num_partitions=8

%body (b: (u32[], u32[], f32[4])) -> (u32[], u32[], f32[4]) {
  %b = (u32[]{:T(128)}, u32[]{:T(128)}, f32[4]{0:T(256)}) parameter(0)
  %low = u32[]{:T(128)} get-tuple-element(%b), index=0
  %copied = u32[]{:T(128)S(6)} copy(%low)
  %high = u32[]{:T(128)} get-tuple-element(%b), index=1
  %x = f32[4]{0:T(256)} get-tuple-element(%b), index=2
  %one = u32[]{:T(128)} constant(1)
  %next_low = u32[]{:T(128)} add(%copied, %one)
  %carry = pred[]{:T(512)S(6)} compare(%next_low, %copied), direction=LT
  %more = u32[]{:T(128)S(6)} add(%high, %one)
  %next_high = u32[]{:T(128)} select(%carry, %more, %high)
  %sum = f32[4]{0:T(256)} all-reduce(%x), channel_id=1, replica_groups=[1,8]<=[8], to_apply=%add
  ROOT %t = (u32[]{:T(128)}, u32[]{:T(128)}, f32[4]{0:T(256)}) tuple(%next_low, %next_high, %sum)
}

%condition (c: (u32[], u32[], f32[4])) -> pred[] {
  %c = (u32[]{:T(128)}, u32[]{:T(128)}, f32[4]{0:T(256)}) parameter(0)
  %zero = s32[]{:T(128)} constant(0)
  %stop_high = u32[]{:T(128)} constant(STOP_HIGH)
  %stop_low = u32[]{:T(128)} constant(STOP_LOW)
  %i = u32[]{:T(128)} get-tuple-element(%c), index=0
  %j = u32[]{:T(128)} get-tuple-element(%c), index=1
  %signed = s32[]{:T(128)S(6)} bitcast-convert(%j)
  %negative = pred[]{:T(512)S(6)} compare(%signed, %zero), direction=LT
  %same = pred[]{:T(512)S(6)} compare(%j, %stop_high), direction=EQ
  %below = pred[]{:T(512)S(6)} compare(%i, %stop_low), direction=LT
  %smaller = pred[]{:T(512)S(6)} compare(%j, %stop_high), direction=LT
  %both = pred[]{:T(512)S(6)} and(%same, %below)
  %either = pred[]{:T(512)S(6)} or(%both, %smaller)
  ROOT %less = pred[]{:T(512)} or(%negative, %either)
}

ENTRY %main (p: f32[4], n: u32[]) -> (u32[], u32[], f32[4]) {
  %p = f32[4]{0:T(256)} parameter(0)
  %n = u32[]{:T(128)} parameter(1)
  %low = u32[]{:T(128)} constant(LOW)
  %start = u32[]{:T(128)} copy(%low)
  %high = u32[]{:T(128)} constant(HIGH)
  %all = (u32[]{:T(128)}, u32[]{:T(128)}, f32[4]{0:T(256)}) tuple(%start, %high, %p)
  ROOT %w = (u32[]{:T(128)}, u32[]{:T(128)}, f32[4]{0:T(256)}) while(%all), condition=%condition, body=%body
}
"""


@pytest.mark.parametrize(
    ("start", "stop", "iterations"),
    [(0, 7, 7), (3, 7, 4), (7, 7, 0), (2**32 - 2, 2**32 + 3, 5), (2**32, 2**32 + 3, 3), (0, 2**32, None)],
)
def test_a_counter_in_two_parts(start, stop, iterations, monkeypatch):
    """Test 64-bit counters that rise by 1. Each iteration sends 28 bytes, as above."""
    monkeypatch.setattr(loops, "MAX_ITERATIONS", 1000)
    text = SPLIT_LOOP
    for name, value in {"STOP_": stop, "": start}.items():
        text = text.replace(f"({name}HIGH)", f"({value >> 32})").replace(f"({name}LOW)", f"({value % 2**32})")
    if iterations is None:
        with pytest.raises(UnsupportedHloError, match="in the loop at w"):
            from_hlo(text)
    else:
        assert from_hlo(text).bytes_sent == iterations * 28
    # The trip count is unknown if the start is an argument of the program.
    with pytest.raises(UnsupportedHloError, match="in the loop at w"):
        from_hlo(text.replace("copy(%low)", "copy(%n)"))


def test_a_small_counter_that_overflows(monkeypatch):
    """Test a counter that rises from 0 in steps of 4 while it's below 254, so the loop has 64 iterations.

    With an 8-bit counter, though, 252 is followed by 0 instead of 256, and the loop never ends.
    """
    monkeypatch.setattr(loops, "MAX_ITERATIONS", 1000)
    text = loop(0, "fusion(%i), kind=kLoop, calls=%step", BELOW_24).replace("constant(24)", "constant(254)")
    assert from_hlo(text).bytes_sent == 64 * 28
    with pytest.raises(UnsupportedHloError, match="in the loop at w"):
        from_hlo(text.replace("s32[]", "u8[]"))


def test_a_computation_without_a_caller():
    text = loop(0, "add(%j, %one)", BELOW_24).replace("while(%all), condition=%condition, body", "whilst(%all), does")
    with pytest.raises(
        UnsupportedHloError, match="all-reduce in the computation body, which no instruction in the text calls"
    ):
        from_hlo(text)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("collective-broadcast(%p), channel_id=1, replica_groups={{0,1}}", "collective-broadcast"),
        ("ragged-all-to-all(%p, %p), replica_groups={{0,1}}", "ragged-all-to-all"),
        ("all-reduce(%p), replica_groups=@somewhere, to_apply=%add", "replica groups in an unknown notation"),
        ("all-reduce(%p), replica_groups={{0,1},{2,3,4}}, to_apply=%add", "groups of different sizes"),
        ("collective-permute(%p), channel_id=1", "without pairs"),
        ("collective-fandango(%p), channel_id=1", "collective-fandango"),
        ("ragged-dot(%p, %p), lhs_contracting_dims={1}", "ragged-dot"),
        ('custom-call(%p), custom_call_target="my_kernel"', "custom call my_kernel"),
        ('custom-call(%p), custom_call_target="__cublas$gemm"', "without dimensions"),
        # The slices of a large TPU system communicate in this way. An instruction for jax.debug looks similar.
        ('send(%p), is_host_transfer=true, frontend_attributes={name="xla_megascale_runtime"}', "send"),
        ('send(%p), is_host_transfer=true, metadata={op_name="jit(f)/pure_callback"}', "send"),
        ('send(%p), channel_id=1, metadata={op_name="jit(f)/debug_print"}', "send"),
    ],
)
def test_an_unknown_cost_is_named(line, message):
    with pytest.raises(UnsupportedHloError, match=message):
        from_hlo(TEXT.replace("LINE", line))


def test_an_unknown_dtype_is_named():
    with pytest.raises(UnsupportedHloError, match="dtype q8"):
        from_hlo(TEXT.replace("f32", "q8x").replace("LINE", "all-reduce(%p), replica_groups={}, to_apply=%add"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{0,1},{2,3}}", ((0, 1), (2, 3))),
        ("[2,4]<=[8]", ((0, 1, 2, 3), (4, 5, 6, 7))),
        ("[4,2]<=[2,4]T(1,0)", ((0, 4), (1, 5), (2, 6), (3, 7))),
        ("mesh['x'=2,'y'=4] {'y'}", ((0, 1, 2, 3), (4, 5, 6, 7))),
        ("mesh['x'=2,'y'=4] {'x'}", ((0, 4), (1, 5), (2, 6), (3, 7))),
        # Devices 0 to 7 in a 2 x 4 grid are transposed to 0 4 1 5 2 6 3 7, and fill the mesh a = 1, b = 4, c = 2.
        ("mesh['a'=1,'b'=4,'c'=2], device_ids=([2,4]T(1,0)) {'b'}", ((0, 1, 2, 3), (4, 5, 6, 7))),
        ("mesh['a'=2,'b'=2,'c'=2] {'a','c'}", ((0, 1, 4, 5), (2, 3, 6, 7))),
        # The axis y of size 4 is split into 2 x 2. Groups along its second part are 0 1 and 2 3, and those along its
        # first part are 0 2 and 1 3.
        ("mesh['x'=2,'y'=4] {'y':(2)2}", ((0, 1), (2, 3), (4, 5), (6, 7))),
        ("mesh['x'=2,'y'=4] {'y':(1)2}", ((0, 2), (1, 3), (4, 6), (5, 7))),
        ("mesh['x'=2,'y'=4] {'x','y':(1)2}", ((0, 2, 4, 6), (1, 3, 5, 7))),
    ],
)
def test_all_notations_of_groups(text, expected):
    assert parse_groups(f" channel_id=1, replica_groups={text}, use_global_device_ids=true", 8) == expected


def test_empty_groups_are_all_devices_or_unprintable():
    assert parse_groups(" channel_id=1, replica_groups={}, to_apply=%add", 8) == (tuple(range(8)),)
    # For groups in a newer notation, which libtpu 0.0.37 uses, jaxlib 0.7.2 prints an empty list.
    with pytest.raises(UnsupportedHloError, match="because libtpu is too new"):
        parse_groups(" channel_id=1, replica_groups={}, use_global_device_ids=true", 8)


def test_an_array_of_unknown_size_is_named():
    text = TEXT.replace("ROOT %r = f32[8,4]", "ROOT %r = f32[<=8,4]").replace(
        "LINE", "all-reduce(%p), replica_groups={}"
    )
    with pytest.raises(UnsupportedHloError, match="size is known only at run time"):
        from_hlo(text)


@pytest.mark.parametrize(
    "line",
    [
        'custom-call(%p), custom_call_target="lapack_sgetrf_ffi"',
        # XLA's memory_space_assignment pass joins the slices of an array that it has fetched into fast memory.
        'custom-call(%p, %p), custom_call_target="ConcatBitcast"',
        "all-reduce-done(%p)",
    ],
)
def test_a_free_operation(line):
    report = from_hlo(TEXT.replace("LINE", line))
    assert (len(report), report.flops) == (0, 0)


GEMM = """HloModule m, is_scheduled=true, num_partitions=2

ENTRY %main (a: KIND[16,32,8], b: KIND[16,8,64]) -> KIND[16,32,64] {
  %a = KIND[16,32,8]{2,1,0} parameter(0)
  %b = KIND[16,8,64]{2,1,0} parameter(1)
  %call = (KIND[16,32,64]{2,1,0}, s8[4194304]{0}) custom-call(KIND[16,32,8]{2,1,0} %a, KIND[16,8,64]{2,1,0} %b), custom_call_target="__cublas$gemm", metadata={op_name="jit(f)/dot_general"}, backend_config={"operation_queue_id":"0","gemm_backend_config":{"alpha_real":1,"beta":0,"dot_dimension_numbers":{"lhs_contracting_dimensions":["2"],"rhs_contracting_dimensions":["1"],"lhs_batch_dimensions":["0"],"rhs_batch_dimensions":["0"]},"epilogue":"DEFAULT"}}
  ROOT %product = KIND[16,32,64]{2,1,0} get-tuple-element(%call), index=0
}
"""


@pytest.mark.parametrize(("kind", "each"), [("bf16", 2), ("c64", 8)])
def test_a_product_by_cublas(kind, each):
    assert from_hlo(GEMM.replace("KIND", kind)).flops == 16 * 32 * 8 * 64 * each


# A TPU starts this all-gather of (8, 4) shards in one fusion and ends it in another. Each of 8 devices sends 7 x 128
# bytes.
CHAIN = """%begin{i} (p: f32[8,4]) -> (f32[8,4], f32[64,4]) {
  %p = f32[8,4]{1,0} parameter(0)
  %g = f32[64,4]{1,0} all-gather(%p), channel_id=1, replica_groups={{0,1,2,3,4,5,6,7}}, frontend_attributes={chain_id="{i}"}
  ROOT %s = (f32[8,4]{1,0}, f32[64,4]{1,0}) custom-call(%g), custom_call_target="AsyncCollectiveStart"
}

%end{i} (q: f32[8,4]) -> f32[64,4] {
  %q = f32[8,4]{1,0} parameter(0)
  %h = f32[64,4]{1,0} all-gather(%q), channel_id=1, replica_groups={{0,1,2,3,4,5,6,7}}, frontend_attributes={chain_id="{i}"}
  ROOT %d = f32[64,4]{1,0} custom-call(%q, %h), custom_call_target="AsyncCollectiveDone"
}

"""


def chains(n):
    """Return a text with n asynchronous all-gathers, and the placeholder LINE for its last instruction."""
    parts = "".join(CHAIN.replace("{i}", str(i)) for i in range(n))
    lines = "".join(
        f"  %begun{i} = (f32[8,4]{{1,0}}, f32[64,4]{{1,0}}) fusion(%p), kind=kCustom, calls=%begin{i}\n"
        f"  %ended{i} = f32[64,4]{{1,0}} fusion(%p), kind=kCustom, calls=%end{i}\n"
        for i in range(n)
    )
    return (
        "HloModule m, is_scheduled=true, num_partitions=8\n\n"
        + parts
        + TEXT.split("\n\n")[1].replace("  ROOT", lines + "  ROOT")
    )


def test_asynchronous_collectives_count_once():
    report = from_hlo(chains(3).replace("LINE", "copy(%p)"))
    assert [(c.kind, c.execution_count, c.bytes_sent, c.asynchronous) for c in report] == [
        ("all-gather", 1, 896, True)
    ] * 3


def test_a_continuation_without_a_start_is_named():
    text = chains(2).replace("LINE", "copy(%p)").replace('chain_id="1"', 'chain_id="7"', 1)
    with pytest.raises(
        UnsupportedHloError, match="all-gather that continues one whose start is not in the program text"
    ):
        from_hlo(text)


FUSED = """HloModule m, is_scheduled=true, num_partitions=8

%all-reduce-scatter (a: f32[16,4], b: f32[16,2]) -> TYPE {
  %a = f32[16,4]{1,0} parameter(0)
  %b = f32[16,2]{1,0} parameter(1)
  %r = (f32[16,4]{1,0}, f32[16,2]{1,0}) all-reduce(%a, %b), replica_groups={{0,4},{1,5},{2,6},{3,7}}, to_apply=%add
  %r0 = f32[16,4]{1,0} get-tuple-element(%r), index=0
  %r1 = f32[16,2]{1,0} get-tuple-element(%r), index=1
  %n = u32[] partition-id()
  %z = u32[] constant(0)
  %c0 = f32[8,4]{1,0} dynamic-slice(%r0, %n, %z), dynamic_slice_sizes={8,4}
  %c1 = f32[8,2]{1,0} dynamic-slice(%r1, %n, %z), dynamic_slice_sizes={8,2}
  %e1 = f32[8,2]{1,0} negate(%c1)
  ROOT %t = TYPE tuple(GIVEN)
}

ENTRY %main (p: f32[16,4], q: f32[16,2]) -> TYPE {
  %p = f32[16,4]{1,0} parameter(0)
  %q = f32[16,2]{1,0} parameter(1)
  ROOT %f = TYPE fusion(%p, %q), kind=kCustom, calls=%all-reduce-scatter, metadata={op_name="jit(f)/dot_general"}
}
"""


def test_an_all_reduce_fused_with_its_slices_is_a_reduce_scatter():
    """Test reduce-scatters in pairs of devices, in which each device sends half of its 256 + 128 bytes."""
    text = FUSED.replace("TYPE", "(f32[8,4]{1,0}, f32[8,2]{1,0})")
    [report] = from_hlo(text.replace("GIVEN", "%c0, %c1"))
    assert (report.kind, report.bytes_sent, report.source.operation) == ("reduce-scatter", 192, "dot_general")
    assert report.results == (("f32", (8, 4)), ("f32", (8, 2)))
    with pytest.raises(UnsupportedHloError, match="all-reduce fused with negate"):
        from_hlo(text.replace("GIVEN", "%c0, %e1"))


def test_an_all_reduce_fused_with_arithmetic_remains_an_all_reduce():
    """Test all-reduces in pairs of devices, in which each device sends 2 (1/2) (256 + 128) bytes."""
    text = FUSED.replace("TYPE", "(f32[16,4]{1,0}, f32[16,2]{1,0})").replace("GIVEN", "%e0, %r1")
    text = "\n".join(line for line in text.splitlines() if "slice" not in line or "%all-reduce-scatter" in line)
    text = text.replace("%e1 = f32[8,2]{1,0} negate(%c1)", "%e0 = f32[16,4]{1,0} negate(%r0)")
    [report] = from_hlo(text)
    assert (report.kind, report.bytes_sent, report.results) == ("all-reduce", 384, (("f32", (16, 4)), ("f32", (16, 2))))


# An asynchronous wrapper calls a fusion that contains an all-reduce, as in NVIDIA/TransformerEngine pull request 3412.
WRAPPED = """HloModule m, is_scheduled=true, num_partitions=4

%fused (q: f32[]) -> f32[] {
  %q = f32[] parameter(0)
  ROOT %all-reduce = f32[] all-reduce(%q), channel_id=1, replica_groups={{0,1},{2,3}}, to_apply=%add
}

%async_computation (p: f32[]) -> f32[] {
  %p = f32[] parameter(0)
  ROOT %fusion = f32[] fusion(%p), kind=kCustom, calls=%fused
}

ENTRY %main (x: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %fusion-start = ((f32[]), f32[]) async-start(%x), calls=%async_computation
  ROOT %fusion-done = f32[] async-done(%fusion-start)CALLS
}
"""


@pytest.mark.parametrize("calls", ["", ", calls=%async_computation"], ids=["new", "old"])
def test_an_asynchronous_fusion(calls):
    """Test that a sum of 4 bytes in pairs of devices counts once, and sends 2 (1/2) 4 bytes."""
    [collective] = from_hlo(WRAPPED.replace("CALLS", calls))
    assert (collective.kind, collective.execution_count, collective.bytes_sent) == ("all-reduce", 1, 4)
    assert collective.asynchronous and collective.groups == ((0, 1), (2, 3))


def test_a_pair_that_the_compiler_marks_as_synchronous():
    """Test that the all-gather counts once, and sends 7 x 128 bytes."""
    pair = (
        "all-gather-start(%p), replica_groups={}, dimensions={0}OPTION\n  ROOT %d = f32[64,4]{1,0} all-gather-done(%r)"
    )
    text = TEXT.replace("ROOT %r = f32[8,4]{1,0}", "%r = (f32[8,4]{1,0}, f32[64,4]{1,0})").replace("LINE", pair)
    [collective] = from_hlo(text.replace("OPTION", ""))
    assert (collective.bytes_sent, collective.asynchronous) == (896, True)
    assert collective.results == (("f32", (64, 4)),)
    [collective] = from_hlo(text.replace("OPTION", ', backend_config={"is_sync":true}'))
    assert (collective.bytes_sent, collective.asynchronous) == (896, False)


# Dumps from JAX 0.12 refer to a tuple's elements as %p#0, and to a nested tuple's as %p#1#1, outermost index first.
ELEMENTS = """HloModule m, is_scheduled=true, num_partitions=8

ENTRY %main (p: (f32[8,4], (s32[], /*index=1*/bf16[16]), f32[])) -> f32[8,4] {
  %p = (f32[8,4]{1,0:T(8,128)}, (s32[], /*index=1*/bf16[16]{0}), f32[]) parameter(0)
  %q = bf16[16]{0} all-reduce(%p#1#1), replica_groups={}, to_apply=%add
  ROOT %r = f32[8,4]{1,0} all-reduce(%p#0), replica_groups={}, to_apply=%add
}
"""


def test_elements_of_tuples_as_operands():
    """Test two sums over 8 devices, of 32 and 128 bytes, which send 2 (7/8) 32 and 2 (7/8) 128 bytes."""
    first, second = from_hlo(ELEMENTS)
    assert (first.operands, first.bytes_sent) == ((("bf16", (16,)),), 56)
    assert (second.operands, second.bytes_sent) == ((("f32", (8, 4)),), 224)


@pytest.mark.parametrize(
    ("array", "size"),
    [
        ("s4[64]{0:E(4)}", 32),
        ("u4[64]{0:T(8,128)(8,1)E(4)S(1)}", 32),
        ("s4[64]{0}", 64),  # not packed, so an element takes up a byte
        ("s2[64]{0:E(2)}", 16),
        ("f4e2m1fn[64]{0:E(4)}", 32),
        ("f8e4m3fn[64]{0}", 64),
        ("f8e8m0fnu[64]{0}", 64),
        ("f8e5m2fnuz[64]{0}", 64),
        ("pred[64]{0}", 64),
        ("c64[64]{0}", 512),
        ("c128[64]{0}", 1024),
        ("bf16[64]{0}", 128),
    ],
)
def test_sizes_of_arrays(array, size):
    """Test an all-gather over eight devices, in which each device sends its shard to seven others."""
    text = TEXT.replace(
        "ROOT %r = f32[8,4]{1,0} LINE",
        f"%a = {array} convert(%p)\n  ROOT %r = {array} all-gather(%a), replica_groups={{}}",
    )
    [collective] = from_hlo(text)
    assert (collective.input_bytes, collective.bytes_sent) == (size, 7 * size)


def test_input_output_and_sent_bytes():
    """Test collectives on 128 bytes a device: an all-gather sends 896 and returns 1,024, an all-to-all sends 112."""
    lines = "all-gather(%p), replica_groups={}\n  %b = f32[8,4]{1,0} all-to-all(%p), replica_groups={}"
    report = from_hlo(TEXT.replace("ROOT %r = f32[8,4]", "%r = f32[64,4]").replace("LINE", lines))
    assert (report.input_bytes, report.output_bytes, report.bytes_sent) == (256, 1_024 + 128, 896 + 112)
    assert report.by_kind("input_bytes") == {"all-gather": 128, "all-to-all": 128}
    assert report.by_kind("output_bytes") == {"all-gather": 1_024, "all-to-all": 128}
    assert report.by_kind() == {"all-gather": 896, "all-to-all": 112}


# Texts that aren't compiled programs.


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "without an entry computation; compiled HLO begins with 'HloModule'"),
        ("module @jit_f attributes {mhlo.num_partitions = 8 : i32} {\n}", "StableHLO, the compiler's input"),
        ("#loc = loc(unknown)\nmodule @jit_f {\n}", "StableHLO, the compiler's input"),
        ("BufferAssignment:\nallocation 0: size 4", "the compiler's memory plan"),
        (TEXT.replace("is_scheduled=true, ", "").replace("LINE", "copy(%p)"), "is not fully compiled"),
        (TEXT.replace("LINE", "all-reduce(p), replica_groups={}"), "without a percent sign"),
    ],
)
def test_a_text_that_is_not_a_compiled_program(text, message):
    with pytest.raises(UnsupportedHloError, match=message):
        from_hlo(text)


def test_a_program_for_one_device_needs_no_schedule():
    text = TEXT.replace("is_scheduled=true, num_partitions=8", "").replace("LINE", "add(%p, %p)")
    assert from_hlo(text).devices == 1


# The time that `from_hlo` takes must be proportional to the text's length. A quadratic algorithm would take 16 times as
# long for a text that is four times as long.


def seconds(text):
    """Return the shortest CPU time, in seconds, of three calls to `from_hlo`."""
    times = []
    for _ in range(3):
        start = time.process_time()
        from_hlo(text)
        times.append(time.process_time() - start)
    return min(times)


def all_reduces(n):
    line = "all-reduce-start(%p), replica_groups={}\n  %d{i} = f32[8,4]{1,0} all-reduce-done(%s{i})\n"
    pairs = "".join(f"  %s{i} = f32[8,4]{{1,0}} " + line.replace("{i}", str(i)) for i in range(n))
    return TEXT.replace("  ROOT", pairs + "  ROOT").replace("LINE", "copy(%p)")


def moves(n):
    """Return a text with n all-gathers, whose source lines `from_hlo` seeks by following their results."""
    gather = "  %g{i} = f32[64,4]{1,0} all-gather(%p), replica_groups={}\n  %h{i} = f32[64,4]{1,0} negate(%g{i})\n"
    lines = "".join(gather.replace("{i}", str(i)) for i in range(n))
    return TEXT.replace("  ROOT", lines + "  ROOT").replace("LINE", "copy(%p)")


def additions(n):
    lines = "\n".join(f'  %a{i} = f32[8,4]{{1,0}} add(%p, %p), metadata={{op_name="jit(f)/add"}}' for i in range(n))
    return TEXT.replace("  ROOT", lines + "\n  ROOT").replace(
        "LINE", "all-reduce(%p), replica_groups={}, to_apply=%add"
    )


@pytest.mark.parametrize(
    ("build", "n"),
    [(all_reduces, 1_500), (lambda n: chains(n).replace("LINE", "copy(%p)"), 500), (additions, 10_000), (moves, 1_000)],
    ids=["collectives", "chains", "other lines", "moves"],
)
def test_reading_takes_linear_time(build, n):
    assert seconds(build(4 * n)) < 8 * seconds(build(n))


# The compiler has combined two all-gathers into one, and two all-reduces into one. The metadata names the Python lines
# that caused them.
COMBINED = """HloModule m, is_scheduled=true, num_partitions=8

ENTRY %main (p: f32[8,4], q: f32[2,4]) -> (f32[8,4], f32[2,4]) {
  %p = f32[8,4]{1,0} parameter(0), metadata={op_name="p"}
  %q = f32[2,4]{1,0} parameter(1), metadata={op_name="q"}
  %start = ((f32[8,4], f32[2,4]), (f32[64,4], f32[16,4])) all-gather-start(%p, %q), replica_groups={}, dimensions={0}, metadata={op_name="jit(f)/while" source_file="t.py" source_line=1}
  %done = (f32[64,4]{1,0}, f32[16,4]{1,0}) all-gather-done(%start), metadata={op_name="jit(f)/while" source_file="t.py" source_line=1}
  %second = f32[16,4]{1,0} get-tuple-element(%done), index=1
  %first = f32[64,4]{1,0} get-tuple-element(%done), index=0
  %a = f32[8,4]{1,0} slice(%first), metadata={op_name="jit(f)/dot_general" source_file="t.py" source_line=5}
  %b = f32[2,4]{1,0} slice(%second), metadata={op_name="jit(f)/transpose(f)/dot_general" source_file="t.py" source_line=6}
  ROOT %sums = (f32[8,4]{1,0}, f32[2,4]{1,0}) all-reduce(%a, %b), replica_groups={}, to_apply=%add, metadata={op_name="jit(f)/dot_general" source_file="t.py" source_line=5}
}
"""


@pytest.mark.parametrize("tuples", ["get-tuple-element", "#"])
def test_each_line_behind_a_combined_collective(tuples):
    """Test that the 128-byte operands are attributed to line 5, and the 32-byte operands to line 6.

    On eight devices, the all-gather sends 7 x 128 and 7 x 32 bytes, and the all-reduce 2 (7/8) 128 and 2 (7/8) 32.
    """
    text = COMBINED
    if tuples == "#":
        text = "\n".join(line for line in text.splitlines() if "get-tuple-element" not in line)
        text = text.replace("%first", "%done#0").replace("%second", "%done#1")
    report = from_hlo(text)
    assert report.counts() == {"all-gather": 1, "all-reduce": 1}
    assert report.by_source("all-gather") == {"t.py:5": 896, "t.py:6": 224}
    assert report.by_source("all-reduce") == {"t.py:5": 224, "t.py:6": 56}
    assert [(kind, sent, operation, line) for kind, _, sent, operation, line in report.sources()] == [
        ("all-gather", 896, "dot_general", "t.py:5"),
        ("all-gather", 224, "dot_general, backward", "t.py:6"),
        ("all-reduce", 224, "dot_general", "t.py:5"),
        ("all-reduce", 56, "dot_general, backward", "t.py:6"),
    ]


COPIED = """HloModule m, is_scheduled=true, num_partitions=8

%copied (c: f32[64,4]) -> f32[64,4] {
  %c = f32[64,4]{0,1} parameter(0)
  ROOT %d = f32[64,4]{1,0} copy(%c), metadata={op_name="jit(f)/gather" source_file="t.py" source_line=1}
}

ENTRY %main (p: f32[8,4]) -> f32[64,4] {
  %p = f32[8,4]{1,0} parameter(0)
  %g = f32[64,4]{0,1} all-gather(%p), replica_groups={}, metadata={op_name="jit(f)/gather" source_file="t.py" source_line=1}
  %w = f32[64,4]{1,0} fusion(%g), kind=kLoop, calls=%copied, metadata={op_name="jit(f)/gather" source_file="t.py" source_line=1}
  ROOT %r = f32[64,4]{1,0} negate(%w), metadata={op_name="jit(f)/neg" source_file="t.py" source_line=2}
}
"""


def test_a_gather_is_attributed_to_the_use_not_to_a_copy():
    """Test a gather and a copy that JAX 0.12 attributes to line 1, which computes the array.

    The array is gathered for line 2, which uses it, so the 7 x 128 bytes belong to that line.
    """
    assert from_hlo(COPIED).by_source() == {"t.py:2": 896}
