"""Texts from three compilers and three versions of JAX, against costs worked out by hand.

`corpus/compile_corpus.py` has the programs, and wrote the texts. The numbers are derived from the programs, with what's
known of the compilers: the CPU's widens narrow floats (float8 and float4 to float16, bfloat16 to float32) and unpacks
int4 before it communicates; a TPU represents a complex number by two real ones.

On eight devices with b bytes on each, an all-gather sends 7 b, a reduce-scatter and an all-to-all 7/8 b, an all-reduce
2 (7/8) b, and a permute b.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from shardcost import UnknownConstruct, from_hlo

CORPUS = sorted(Path(__file__).parent.glob("corpus/*.txt"))

# program: (FLOPs in matrix products per device, {target or "": {kind: (times, bytes sent)}})
EXPECTED = {
    # Shards of 8 x 16: 128 elements.
    "gather_float8": (0, {"cpu": {"all-gather": (1, 7 * 128 * 2)}, "": {"all-gather": (1, 7 * 128)}}),
    "gather_int4": (0, {"cpu": {"all-gather": (1, 7 * 128)}, "": {"all-gather": (1, 7 * 128 // 2)}}),
    "gather_bool": (0, {"": {"all-gather": (1, 7 * 128)}}),
    "sum_complex": (0, {"": {"all-reduce": (1, 2 * 7 * 128 * 8 // 8)}}),
    "permute_bfloat16": (0, {"cpu": {"collective-permute": (1, 128 * 4)}, "": {"collective-permute": (1, 128 * 2)}}),
    # Shards of 8 x 64 float32, three times.
    "all_to_all_in_a_scan": (0, {"": {"all-to-all": (3, 3 * 7 * 8 * 64 * 4 // 8)}}),
    # Gathered: shards of 64 x 256. Then 512 x 256 x 128 and 512 x 128 x 256 multiply-adds, and partial sums of 512 x 256.
    "tensor_parallel": (
        2 * 2 * 512 * 256 * 128,
        {
            "cpu": {"all-gather": (1, 7 * 64 * 256 * 4), "all-reduce": (1, 2 * 7 * 512 * 256 * 4 // 8)},
            "": {"all-gather": (1, 7 * 64 * 256 * 2), "all-reduce": (1, 2 * 7 * 512 * 256 * 2 // 8)},
        },
    ),
    # In each of four layers, shards of 64 x 512 are gathered forward and backward. There are three products of
    # 512 x 512 x 512, and gradients of 512 x 512, which the CPU compiler reduces as a whole.
    "fully_sharded": (
        4 * 3 * 2 * 512**3,
        {
            "cpu": {"all-gather": (8, 8 * 7 * 64 * 512 * 4), "all-reduce": (4, 4 * 2 * 7 * 512 * 512 * 4 // 8)},
            "": {"all-gather": (8, 8 * 7 * 64 * 512 * 2), "reduce-scatter": (4, 4 * 7 * 512 * 512 * 2 // 8)},
        },
    ),
    "product_float8": (2 * 64 * 256 * 128, {"": {}}),
    "matrix_vector": (2 * 64 * 256, {"": {}}),
    # The condition sums 4 bytes, once more often than the body runs. (The test says that it runs five times.)
    "unknown_trip_count": (0, {"": {"all-reduce": (6, 6 * 7)}}),
    # An image of 32 x 32 on each device, with 16 x 16 features: along each side, a kernel of 3 meets 3 x 32 - 2 inputs.
    "convolution": (2 * 16 * 16 * 94 * 94, {"": {}}),
}
# The TPU compiler splits a side of the image into 8 parts with 5 outputs each, which don't meet any padding.
FLOPS = {("convolution", "v5e"): 2 * 16 * 16 * 94 * (8 * 5 * 3)}
REFUSED = {
    ("convolution", "h100"): r"the custom call __cudnn\$convForward \(conv_general_dilated\)",
    ("ragged_all_to_all", "h100"): "ragged-all-to-all, whose sizes are known only at run time",
    ("ragged_all_to_all", "v5e"): "ragged-all-to-all, whose sizes are known only at run time",
    ("unknown_trip_count", "cpu"): r"all-reduce in the loop at compile_corpus\.py:\d+, whose trip count",
    ("unknown_trip_count", "h100"): r"all-reduce in the loop at compile_corpus\.py:\d+, whose trip count",
    ("unknown_trip_count", "v5e"): r"all-reduce in the loop at compile_corpus\.py:\d+, whose trip count",
}


def names(path):
    program, target, *_ = path.name.split(".")
    return program, target


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_a_compiled_text(path):
    program, target = names(path)
    text = path.read_text(encoding="utf-8")
    if names(path) in REFUSED:
        with pytest.raises(UnknownConstruct, match=REFUSED[program, target]):
            from_hlo(text)
        report = from_hlo(text, strict=False)
        assert (len(report), report.flops, len(report.unknown)) == (0, 0, 1)
    if program != "unknown_trip_count" and (program, target) in REFUSED:
        return
    report = from_hlo(text, trip_counts=5)
    flops, collectives = EXPECTED[program]
    assert report.counts() == {kind: n for kind, (n, _) in collectives.get(target, collectives.get("", {})).items()}
    assert report.by_kind() == {kind: b for kind, (_, b) in collectives.get(target, collectives.get("", {})).items()}
    assert report.flops == FLOPS.get((program, target), flops)
    assert report.devices == 8


def line_of(code):
    """Return the number of a line of the programs."""
    lines = (Path(__file__).parent / "corpus" / "compile_corpus.py").read_text(encoding="utf-8").splitlines()
    return next(i for i, line in enumerate(lines, 1) if line.strip() == code)


@pytest.mark.parametrize("path", [p for p in CORPUS if names(p)[0] == "fully_sharded"], ids=lambda path: path.stem)
def test_all_gathers_in_a_loop_belong_to_the_product_in_it(path):
    report = from_hlo(path.read_text(encoding="utf-8"))
    line = line_of("return jnp.tanh(x @ w), None")
    assert set(report.by_source("all-gather")) == {f"compile_corpus.py:{line}"}


def test_the_corpus_is_complete():
    """Every program is there for each target, except those that its compiler doesn't compile."""
    combinations = {names(path) for path in CORPUS}
    wanted = {(program, target) for program in (*EXPECTED, "ragged_all_to_all") for target in ("cpu", "h100", "v5e")}
    assert wanted - combinations == {("ragged_all_to_all", "cpu")}
    assert len(CORPUS) > 60
