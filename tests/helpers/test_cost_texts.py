"""The counter on texts written for the purpose: what compilers were seen to write, and what they may."""

from __future__ import annotations

import time

import pytest

from utils.count import cost as counter
from utils.count.groups import groups
from utils.count.hlo import UnknownConstruct

pytestmark = pytest.mark.once

TEXT = """HloModule m, num_partitions=8

ENTRY %main (p: f32[8,4]) -> f32[8,4] {
  %p = f32[8,4]{1,0} parameter(0)
  ROOT %r = f32[8,4]{1,0} LINE
}
"""


# A loop as a TPU's compiler writes it, which keeps the counter in another memory: START, NEXT and TEST are filled in.
LOOP = """HloModule m, num_partitions=8

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
    return LOOP.replace("START", str(start)).replace("NEXT", following).replace("TEST", test)


@pytest.mark.parametrize(
    ("start", "following", "test", "rounds"),
    [
        (0, "add(%j, %one)", BELOW_24, 24),
        (30, "add(%j, %one)", BELOW_24, 0),
        (-1, "add(%three, %j)", BELOW_24, 9),  # -1, 2, ... 23
        (0, "fusion(%i), kind=kLoop, calls=%step", BELOW_24, 6),
        (0, "fusion(%i), kind=kLoop, calls=%step", "compare(%k, %stop), direction=LE", 7),
        (0, "fusion(%i), kind=kLoop, calls=%step", "fusion(%k, %stop), kind=kLoop, calls=%below", 6),
        (99, "get-tuple-element(%fused), index=1", "compare(%k, %stop), direction=GE", 16),  # 99, 94, ... 24
        (99, "get-tuple-element(%fused), index=1", "compare(%k, %stop), direction=NE", 15),
        (0, "add(%j, %one)", "compare(%k, %limit), direction=LT", 11),  # what the loop carries along unchanged
        (0, "add(%j, %kept)", BELOW_24, 3),  # 0, 11, 22
        (0, "add(%j, %one)", "compare(%double, %stop), direction=LT", 12),
        (0, "add(%j, %one)", "compare(%stop, %double), direction=GT", 12),
        (0, "subtract(%j, %one)", BELOW_24, None),  # without an end
        (0, "subtract(%one, %j)", BELOW_24, None),
        (0, "add(%j, %one)", "compare(%double, %k), direction=LT", 0),
        (0, "add(%j, %three)", "compare(%k, %stop), direction=NE", 8),
        (1, "add(%j, %three)", "compare(%k, %stop), direction=NE", None),  # passes it by
        (0, "add(%j, %one)", "compare(%k, %stop), direction=EQ", None),
        (0, "add(%twice, %one)", BELOW_24, None),
        (0, "multiply(%j, %j)", BELOW_24, None),
        (0, "get-tuple-element(%fused), index=0", BELOW_24, None),
        (0, "convert(%sum)", BELOW_24, None),
        (0, "add(%j, %one)", "and(%k, %stop)", None),
        (2**31 - 9, "fusion(%i), kind=kLoop, calls=%step", "compare(%k, %stop), direction=GT", None),  # overflows
    ],
)
def test_the_rounds_of_a_loop(start, following, test, rounds):
    """Each adds up 16 bytes on eight devices: 2 (7/8) 16."""
    text = loop(start, following, test)
    if rounds is None:
        with pytest.raises(UnknownConstruct, match="all-reduce in a loop"):
            counter.read(text)
        assert counter.read(text, rounds=7).bytes_sent == 7 * 28
    else:
        assert [(c.times, c.bytes_sent) for c in counter.read(text)] == [(rounds, rounds * 28)] * bool(rounds)


def test_a_small_counter_that_overflows():
    """From 0 by 4 below 254: 256 is 0 again, and the loop does not end where a larger counter would."""
    text = loop(0, "fusion(%i), kind=kLoop, calls=%step", BELOW_24).replace("constant(24)", "constant(254)")
    assert counter.read(text).bytes_sent == 64 * 28
    with pytest.raises(UnknownConstruct, match="in a loop"):
        counter.read(text.replace("s32[]", "u8[]"))


def test_a_computation_that_nothing_is_seen_to_run():
    text = loop(0, "add(%j, %one)", BELOW_24).replace("while(%all), condition=%condition, body", "whilst(%all), does")
    with pytest.raises(UnknownConstruct, match="all-reduce in body, of which the program does not tell what runs it"):
        counter.read(text)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("collective-broadcast(%p), channel_id=1, replica_groups={{0,1}}", "collective-broadcast"),
        ("ragged-all-to-all(%p, %p), replica_groups={{0,1}}", "ragged-all-to-all"),
        ("all-reduce(%p), replica_groups=@somewhere, to_apply=%add", "replica groups spelled"),
        ("all-reduce(%p), replica_groups={{0,1},{2,3,4}}, to_apply=%add", "groups of different sizes"),
        ("collective-permute(%p), channel_id=1", "without pairs"),
        ("collective-fandango(%p), channel_id=1", "collective-fandango"),
        ("ragged-dot(%p, %p), lhs_contracting_dims={1}", "ragged-dot"),
        ('custom-call(%p), custom_call_target="my_kernel"', "custom call my_kernel"),
        ('custom-call(%p), custom_call_target="__cublas$gemm"', "without dimensions"),
        # A large system's slices talk so on a TPU; jax.debug's line looks alike.
        ('send(%p), is_host_transfer=true, frontend_attributes={name="xla_megascale_runtime"}', "send"),
        ('send(%p), is_host_transfer=true, metadata={op_name="jit(f)/pure_callback"}', "send"),
        ('send(%p), channel_id=1, metadata={op_name="jit(f)/debug_print"}', "send"),
    ],
)
def test_what_has_no_price_is_named(line, message):
    with pytest.raises(UnknownConstruct, match=message):
        counter.read(TEXT.replace("LINE", line))


def test_an_unknown_dtype_is_named():
    with pytest.raises(UnknownConstruct, match="dtype q8"):
        counter.read(TEXT.replace("f32", "q8x").replace("LINE", "all-reduce(%p), replica_groups={}, to_apply=%add"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{0,1},{2,3}}", ((0, 1), (2, 3))),
        ("[2,4]<=[8]", ((0, 1, 2, 3), (4, 5, 6, 7))),
        ("[4,2]<=[2,4]T(1,0)", ((0, 4), (1, 5), (2, 6), (3, 7))),
        ("mesh['x'=2,'y'=4] {'y'}", ((0, 1, 2, 3), (4, 5, 6, 7))),
        ("mesh['x'=2,'y'=4] {'x'}", ((0, 4), (1, 5), (2, 6), (3, 7))),
        # Devices 0..7 in a 2 x 4 grid, transposed: 0 4 1 5 2 6 3 7 fill the mesh a = 1, b = 4, c = 2.
        ("mesh['a'=1,'b'=4,'c'=2], device_ids=([2,4]T(1,0)) {'b'}", ((0, 1, 2, 3), (4, 5, 6, 7))),
        ("mesh['a'=2,'b'=2,'c'=2] {'a','c'}", ((0, 1, 4, 5), (2, 3, 6, 7))),
        # y = 4 seen as 2 x 2: along the second part 0 1, 2 3; along the first 0 2, 1 3.
        ("mesh['x'=2,'y'=4] {'y':(2)2}", ((0, 1), (2, 3), (4, 5), (6, 7))),
        ("mesh['x'=2,'y'=4] {'y':(1)2}", ((0, 2), (1, 3), (4, 6), (5, 7))),
        ("mesh['x'=2,'y'=4] {'x','y':(1)2}", ((0, 2, 4, 6), (1, 3, 5, 7))),
    ],
)
def test_all_spellings_of_groups(text, expected):
    assert groups(f" channel_id=1, replica_groups={text}, use_global_device_ids=true", 8) == expected


def test_no_groups_are_all_devices_or_lost_ones():
    assert groups(" channel_id=1, replica_groups={}, to_apply=%add", 8) == (tuple(range(8)),)
    # What jaxlib 0.7.2 prints of groups that libtpu 0.0.37 spelled in a way it does not know.
    with pytest.raises(UnknownConstruct, match="the libtpu is too new"):
        groups(" channel_id=1, replica_groups={}, use_global_device_ids=true", 8)


def test_an_array_of_unknown_size_is_named():
    text = TEXT.replace("ROOT %r = f32[8,4]", "ROOT %r = f32[<=8,4]").replace(
        "LINE", "all-reduce(%p), replica_groups={}"
    )
    with pytest.raises(UnknownConstruct, match="size that the program finds out"):
        counter.read(text)


@pytest.mark.parametrize(
    "line",
    [
        'custom-call(%p), custom_call_target="lapack_sgetrf_ffi"',
        # XLA's memory_space_assignment: an array that was fetched to fast memory in slices, as one again.
        'custom-call(%p, %p), custom_call_target="ConcatBitcast"',
        "all-reduce-done(%p)",
    ],
)
def test_what_needs_no_price(line):
    found = counter.read(TEXT.replace("LINE", line))
    assert (len(found), found.flops) == (0, 0)


GEMM = """HloModule m, num_partitions=2

ENTRY %main (a: KIND[16,32,8], b: KIND[16,8,64]) -> KIND[16,32,64] {
  %a = KIND[16,32,8]{2,1,0} parameter(0)
  %b = KIND[16,8,64]{2,1,0} parameter(1)
  %call = (KIND[16,32,64]{2,1,0}, s8[4194304]{0}) custom-call(KIND[16,32,8]{2,1,0} %a, KIND[16,8,64]{2,1,0} %b), custom_call_target="__cublas$gemm", metadata={op_name="jit(f)/dot_general"}, backend_config={"operation_queue_id":"0","gemm_backend_config":{"alpha_real":1,"beta":0,"dot_dimension_numbers":{"lhs_contracting_dimensions":["2"],"rhs_contracting_dimensions":["1"],"lhs_batch_dimensions":["0"],"rhs_batch_dimensions":["0"]},"epilogue":"DEFAULT"}}
  ROOT %product = KIND[16,32,64]{2,1,0} get-tuple-element(%call), index=0
}
"""


@pytest.mark.parametrize(("kind", "each"), [("bf16", 2), ("c64", 8)])
def test_a_product_by_a_gpu_s_library(kind, each):
    assert counter.read(GEMM.replace("KIND", kind)).flops == 16 * 32 * 8 * 64 * each


# An all-gather of (8, 4) that a TPU begins in one fusion and ends in another: 7 x 128 bytes on each of 8 devices.
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
    parts = "".join(CHAIN.replace("{i}", str(i)) for i in range(n))
    lines = "".join(
        f"  %begun{i} = (f32[8,4]{{1,0}}, f32[64,4]{{1,0}}) fusion(%p), kind=kCustom, calls=%begin{i}\n"
        f"  %ended{i} = f32[64,4]{{1,0}} fusion(%p), kind=kCustom, calls=%end{i}\n"
        for i in range(n)
    )
    return "HloModule m, num_partitions=8\n\n" + parts + TEXT.split("\n\n")[1].replace("  ROOT", lines + "  ROOT")


def test_asynchronous_collectives_count_once():
    found = counter.read(chains(3).replace("LINE", "copy(%p)"))
    assert [(c.kind, c.times, c.bytes_sent, c.asynchronous) for c in found] == [("all-gather", 1, 896, True)] * 3


def test_one_that_only_goes_on_is_named():
    text = chains(2).replace("LINE", "copy(%p)").replace('chain_id="1"', 'chain_id="7"', 1)
    with pytest.raises(
        UnknownConstruct, match="all-gather that goes on with one whose beginning the text does not show"
    ):
        counter.read(text)


FUSED = """HloModule m, num_partitions=8

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


def test_a_sum_fused_with_its_slices_is_a_reduce_scatter():
    """256 + 128 bytes in pairs of devices: half of it."""
    text = FUSED.replace("TYPE", "(f32[8,4]{1,0}, f32[8,2]{1,0})")
    [found] = counter.read(text.replace("GIVEN", "%c0, %c1"))
    assert (found.kind, found.bytes_sent, found.source.operation) == ("reduce-scatter", 192, "dot_general")
    assert found.results == (("f32", (8, 4)), ("f32", (8, 2)))
    with pytest.raises(UnknownConstruct, match="all-reduce fused with negate"):
        counter.read(text.replace("GIVEN", "%c0, %e1"))


def seconds(text):
    start = time.process_time()  # not the clock on the wall: the machine may be busy
    counter.read(text)
    return time.process_time() - start


def test_time_grows_with_the_number_of_collectives():
    line = "all-reduce-start(%p), replica_groups={}\n  %d{i} = f32[8,4]{1,0} all-reduce-done(%s{i})\n"
    pairs = "".join(f"  %s{i} = f32[8,4]{{1,0}} " + line.replace("{i}", str(i)) for i in range(6_000))
    assert seconds(TEXT.replace("  ROOT", pairs + "  ROOT").replace("LINE", "copy(%p)")) < 3
    assert seconds(chains(2_000).replace("LINE", "copy(%p)")) < 3


def test_time_grows_with_the_text():
    body = "\n".join(f'  %a{i} = f32[8,4]{{1,0}} add(%p, %p), metadata={{op_name="jit(f)/add"}}' for i in range(40_000))
    text = TEXT.replace("  ROOT", body + "\n  ROOT").replace("LINE", "all-reduce(%p), replica_groups={}, to_apply=%add")
    assert len(text) > 2_500_000
    start = time.process_time()  # not the clock on the wall: the machine may be busy
    assert counter.read(text).bytes_sent == 2 * 7 * 128 // 8
    assert time.process_time() - start < 2
