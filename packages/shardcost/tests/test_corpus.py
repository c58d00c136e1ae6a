"""Test `from_hlo` on texts from three compilers and three JAX versions, against manually calculated costs.

`corpus/compile_corpus.py` defines the programs, and generated the texts. The expected costs follow from the programs
and from these facts about the compilers: for communication, the CPU compiler widens narrow floats (float8 and float4 to
float16, bfloat16 to float32) and unpacks int4; the TPU compiler represents a complex number by two real numbers.

With b bytes on each of eight devices, a device sends 7 b bytes in an all-gather, 7/8 b in a reduce-scatter or an
all-to-all, 2 (7/8) b in an all-reduce, and b in a permute.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from shardcost import UnsupportedHloError, from_hlo

CORPUS = sorted(Path(__file__).parent.glob("corpus/*.txt"))

# program: (FLOPs in matrix products per device, {target or "": {kind: (times, bytes sent)}})
EXPECTED = {
    # Each shard is 8 x 16, or 128 elements.
    "gather_float8": (0, {"cpu": {"all-gather": (1, 7 * 128 * 2)}, "": {"all-gather": (1, 7 * 128)}}),
    "gather_int4": (0, {"cpu": {"all-gather": (1, 7 * 128)}, "": {"all-gather": (1, 7 * 128 // 2)}}),
    "gather_bool": (0, {"": {"all-gather": (1, 7 * 128)}}),
    "sum_complex": (0, {"": {"all-reduce": (1, 2 * 7 * 128 * 8 // 8)}}),
    "permute_bfloat16": (0, {"cpu": {"collective-permute": (1, 128 * 4)}, "": {"collective-permute": (1, 128 * 2)}}),
    # Shards of 8 x 64 float32 elements are exchanged three times.
    "all_to_all_in_a_scan": (0, {"": {"all-to-all": (3, 3 * 7 * 8 * 64 * 4 // 8)}}),
    # Shards of 64 x 256 are gathered. The products take 512 x 256 x 128 and 512 x 128 x 256 multiply-adds, and the
    # second one yields partial sums of 512 x 256.
    "tensor_parallel": (
        2 * 2 * 512 * 256 * 128,
        {
            "cpu": {"all-gather": (1, 7 * 64 * 256 * 4), "all-reduce": (1, 2 * 7 * 512 * 256 * 4 // 8)},
            "": {"all-gather": (1, 7 * 64 * 256 * 2), "all-reduce": (1, 2 * 7 * 512 * 256 * 2 // 8)},
        },
    ),
    # In each of four layers, shards of 64 x 512 are gathered forward and backward. There are three products of
    # 512 x 512 x 512, and a gradient of 512 x 512, which the CPU compiler all-reduces instead of scattering.
    "fully_sharded": (
        4 * 3 * 2 * 512**3,
        {
            "cpu": {"all-gather": (8, 8 * 7 * 64 * 512 * 4), "all-reduce": (4, 4 * 2 * 7 * 512 * 512 * 4 // 8)},
            "": {"all-gather": (8, 8 * 7 * 64 * 512 * 2), "reduce-scatter": (4, 4 * 7 * 512 * 512 * 2 // 8)},
        },
    ),
    "product_float8": (2 * 64 * 256 * 128, {"": {}}),
    "matrix_vector": (2 * 64 * 256, {"": {}}),
    # The loop's condition sums 4 bytes. It runs six times, because the test passes a trip count of five for the body.
    "unknown_trip_count": (0, {"": {"all-reduce": (6, 6 * 7)}}),
    # Each shard is 8 x 16, or 128 elements, as above.
    "gather_float32": (0, {"": {"all-gather": (1, 7 * 128 * 4)}}),
    "gather_bfloat16": (0, {"cpu": {"all-gather": (1, 7 * 128 * 4)}, "": {"all-gather": (1, 7 * 128 * 2)}}),
    "gather_float16": (0, {"": {"all-gather": (1, 7 * 128 * 2)}}),
    # The TPU compiler all-reduces a small array instead of scattering it.
    "scatter_sum": (
        0,
        {"v5e": {"all-reduce": (1, 2 * 7 * 128 * 4 // 8)}, "": {"reduce-scatter": (1, 7 * 128 * 4 // 8)}},
    ),
    # Each shard is 512 x 256.
    "scatter_sum_bfloat16": (
        0,
        {
            "cpu": {"reduce-scatter": (1, 7 * 512 * 256 * 4 // 8)},
            "": {"reduce-scatter": (1, 7 * 512 * 256 * 2 // 8)},
        },
    ),
    # The TPU compiler splits a float64 into two float32 values, gathers both, and adds them up on each device.
    "sum_float64": (
        0,
        {"v5e": {"all-gather": (2, 2 * 7 * 128 * 4)}, "": {"all-reduce": (1, 2 * 7 * 128 * 8 // 8)}},
    ),
    "all_to_all_int8": (0, {"": {"all-to-all": (1, 7 * 8 * 64 // 8)}}),
    "permute_int4": (0, {"cpu": {"collective-permute": (1, 128)}, "": {"collective-permute": (1, 128 // 2)}}),
    # Each tile is 32 x 16. The permute sends around two rings of four devices. The sums are over four or eight devices.
    "permute_along_y": (0, {"": {"collective-permute": (1, 32 * 16 * 4)}}),
    "sum_along_y": (0, {"": {"all-reduce": (1, 2 * 3 * 32 * 16 * 4 // 4)}}),
    "sum_along_both": (0, {"": {"all-reduce": (1, 2 * 7 * 32 * 16 * 4 // 8)}}),
    # Different reductions can't be combined.
    "largest_and_smallest": (0, {"": {"all-reduce": (2, 2 * 2 * 7 * 128 * 4 // 8)}}),
    # Every compiler combines the sums of 8 x 16, 16 and 8 elements.
    "combined_sums": (0, {"": {"all-reduce": (1, 2 * 7 * (128 + 16 + 8) * 4 // 8)}}),
    "nested_scans": (0, {"": {"all-reduce": (3 * 4, 3 * 4 * 2 * 7 * 128 * 4 // 8)}}),
    "two_collectives_in_a_scan": (
        0,
        {"": {"all-reduce": (3, 3 * 2 * 7 * 128 * 4 // 8), "collective-permute": (3, 3 * 128 * 4)}},
    ),
    # The counter is 0, 3, 6 and 9 while it's below 10.
    "counted_while": (0, {"": {"all-reduce": (4, 4 * 2 * 7 * 128 * 4 // 8)}}),
    # Each shard is 8 x 16. The TPU compiler splits the scan's 64-bit counter into two 32-bit ones.
    "ring_with_int64": (0, {"": {"collective-permute": (5, 5 * 128 * 4)}}),
    # The branch with the all-reduce sends more bytes; the one with the permute computes a product of 8 x 16 x 16.
    "branches": (2 * 8 * 16 * 16, {"": {"all-reduce": (1, 2 * 7 * 128 * 4 // 8)}}),
    # In each of four layers, shards of 2 x 16 are gathered forward and, because of the checkpoint, again backward. A
    # gradient of 16 x 16 is scattered (or all-reduced by the TPU compiler, because it's small). There are four products
    # of 8 x 16 x 16, because the forward product runs twice.
    "checkpointed": (
        4 * 4 * 2 * 8 * 16 * 16,
        {
            "cpu": {"all-gather": (8, 8 * 7 * 2 * 16 * 4), "reduce-scatter": (4, 4 * 7 * 16 * 16 * 4 // 8)},
            "h100": {"all-gather": (8, 8 * 7 * 2 * 16 * 2), "reduce-scatter": (4, 4 * 7 * 16 * 16 * 2 // 8)},
            "v5e": {"all-gather": (8, 8 * 7 * 2 * 16 * 2), "all-reduce": (4, 4 * 2 * 7 * 16 * 16 * 2 // 8)},
        },
    ),
    # There are two products of 8 x 32 x 64 (the data has no gradient) and three of 8 x 64 x 16. The gradients, 32 x 64
    # and 64 x 16, are summed together.
    "data_parallel": (
        2 * (2 * 8 * 32 * 64) + 3 * (2 * 8 * 64 * 16),
        {"": {"all-reduce": (1, 2 * 7 * (32 * 64 + 64 * 16) * 4 // 8)}},
    ),
    # There are two products of 8 x 16 x 16, and the second one yields partial sums of 16 x 16.
    "donated": (2 * 2 * 8 * 16 * 16, {"": {"all-reduce": (1, 2 * 7 * 16 * 16 * 4 // 8)}}),
    # Shards of 64 x 256 are gathered, and each device computes the full product.
    "overlapped": (
        2 * 1024**3,
        {"cpu": {"all-gather": (1, 7 * 64 * 256 * 4)}, "": {"all-gather": (1, 7 * 64 * 256 * 2)}},
    ),
    # The partial sums of 64 x 128, each over 32 products, are float32.
    "sum_of_products_float8": (2 * 64 * 32 * 128, {"": {"all-reduce": (1, 2 * 7 * 64 * 128 * 4 // 8)}}),
    # Each of the 8 x 32 x 16 complex multiply-adds counts as 8 FLOPs.
    "product_complex": (8 * 8 * 32 * 16, {"": {}}),
    # Each device computes 2 of the 16 products.
    "product_batched": (2 * 2 * 32 * 64 * 32, {"": {}}),
    # Each device multiplies 32 x 8 by 8 x 32, which yields a partial sum.
    "product_transposed": (2 * 32 * 8 * 32, {"": {"all-reduce": (1, 2 * 7 * 32 * 32 * 4 // 8)}}),
    # Each device convolves an image of 32 x 32 pixels, from 16 features to 16. Along each side, 3 x 32 - 2 pairs of an
    # output and one of the kernel's three positions read a pixel rather than padding.
    "convolution": (2 * 16 * 16 * 94 * 94, {"": {}}),
}
# The TPU compiler splits a side of the image into 8 parts with 5 outputs each, none of which reads any padding. It
# computes a complex product with three real products.
FLOPS = {
    ("convolution", "v5e"): 2 * 16 * 16 * 94 * (8 * 5 * 3),
    ("product_complex", "v5e"): 3 * 2 * 8 * 32 * 16,
}
REFUSED = {
    ("convolution", "h100"): r"the custom call __cudnn\$convForward \(conv_general_dilated\)",
    ("ragged_all_to_all", "h100"): "ragged-all-to-all, whose sizes are known only at run time",
    ("ragged_all_to_all", "v5e"): "ragged-all-to-all, whose sizes are known only at run time",
    ("unknown_trip_count", "cpu"): r"all-reduce in the loop at compile_corpus\.py:\d+, whose trip count",
    ("unknown_trip_count", "h100"): r"all-reduce in the loop at compile_corpus\.py:\d+, whose trip count",
    ("unknown_trip_count", "v5e"): r"all-reduce in the loop at compile_corpus\.py:\d+, whose trip count",
    ("branches", "cpu"): r"(all-reduce|permute) in a branch of the conditional at compile_corpus\.py:\d+",
    ("branches", "h100"): r"(all-reduce|permute) in a branch of the conditional at compile_corpus\.py:\d+",
    ("branches", "v5e"): r"(all-reduce|permute) in a branch of the conditional at compile_corpus\.py:\d+",
}
UNKNOWN = {"branches": 3}  # one message each for the all-reduce, the permute and the product; other programs have one
# The arguments with which `from_hlo` can count these programs.
ARGUMENTS = {"unknown_trip_count": {"trip_counts": 5}, "branches": {"branches": "max"}}


def names(path):
    program, target, *_ = path.name.split(".")
    return program, target


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_a_compiled_text(path):
    program, target = names(path)
    text = path.read_text(encoding="utf-8")
    if names(path) in REFUSED:
        with pytest.raises(UnsupportedHloError, match=REFUSED[program, target]):
            from_hlo(text)
        report = from_hlo(text, strict=False)
        assert (len(report), report.flops, len(report.unknown)) == (0, 0, UNKNOWN.get(program, 1))
        if program not in ARGUMENTS:
            return
    report = from_hlo(text, **ARGUMENTS.get(program, {}))
    flops, collectives = EXPECTED[program]
    assert report.counts() == {kind: n for kind, (n, _) in collectives.get(target, collectives.get("", {})).items()}
    assert report.by_kind() == {kind: b for kind, (_, b) in collectives.get(target, collectives.get("", {})).items()}
    assert report.flops == FLOPS.get((program, target), flops)
    assert report.devices == 8


def line_of(code):
    """Return the number of the line in compile_corpus.py that contains only `code`."""
    lines = (Path(__file__).parent / "corpus" / "compile_corpus.py").read_text(encoding="utf-8").splitlines()
    return next(i for i, line in enumerate(lines, 1) if line.strip() == code)


@pytest.mark.parametrize("path", [p for p in CORPUS if names(p)[0] == "fully_sharded"], ids=lambda path: path.stem)
def test_all_gathers_in_a_loop_belong_to_the_product_in_it(path):
    report = from_hlo(path.read_text(encoding="utf-8"))
    line = line_of("return jnp.tanh(x @ w), None")
    assert set(report.by_source("all-gather")) == {f"compile_corpus.py:{line}"}


@pytest.mark.parametrize("path", [p for p in CORPUS if "_along_" in p.name], ids=lambda path: path.stem)
def test_axes_of_a_grid(path):
    report = from_hlo(path.read_text(encoding="utf-8"), axes={"x": 2, "y": 4})
    assert list(report.by_axis()) == ["x, y" if "_along_both" in path.name else "y"]


@pytest.mark.parametrize("path", [p for p in CORPUS if names(p)[0] == "overlapped"], ids=lambda path: path.stem)
def test_gpus_and_tpus_overlap_a_gather_with_a_product(path):
    [gather] = from_hlo(path.read_text(encoding="utf-8"))
    assert gather.asynchronous == (names(path)[1] != "cpu")


def test_the_corpus_is_complete():
    """Test that the corpus has a text of each program for each target, except where a compiler rejects the program."""
    combinations = {names(path) for path in CORPUS}
    expected = {(program, target) for program in (*EXPECTED, "ragged_all_to_all") for target in ("cpu", "h100", "v5e")}
    assert expected - combinations == {("ragged_all_to_all", "cpu")}
    assert len(CORPUS) > 180
