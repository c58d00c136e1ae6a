"""python plan.py 64 918e12 200e9 32 40 4096 256 2048: rank all plans for 64 TPU v6e.

Pass the number of chips, their FLOP/s, bytes/s in a ring and GB; then the layers, the
width, the sequences per step and their length. Add flash if attention stores no scores.
"""

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from itertools import product

cli = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
defaults = {"chips": 64, "flops": 918e12, "bandwidth": 200e9, "GB": 32}
defaults |= {"layers": 40, "width": 4096, "sequences": 256, "length": 2048}
for name, default in defaults.items():
    cli.add_argument(name, type=float, nargs="?", default=default)
cli.add_argument("flash", choices=["flash"], nargs="?")
*numbers, FLASH = vars(cli.parse_args()).values()
if not all(1 <= number < float("inf") for number in numbers):
    cli.error("every number must be at least 1, and finite")
CHIPS, C, W, GB, L, D, SEQUENCES, LENGTH = map(int, numbers)
if CHIPS.bit_count() > 1 or D % 128:
    cli.error("chips must be a power of two, and width a multiple of 128")
HEADS, F, WORDS = D // 128, 4 * D, 32768  # YOURS: heads, hidden features, words
LAYER = 4 * D * D + 2 * D * F  # parameters of a layer
N = L * LAYER + WORDS * D


def price(data, fsdp, model, micro, remat):
    """Return the GB that a chip needs and the seconds that it computes and sends."""
    tokens = SEQUENCES * LENGTH / (data * fsdp)  # for all chips along model together
    owned = N / (fsdp * model)  # parameters that a chip stores
    x = 2 * tokens * D  # bytes of a layer's input
    scores = 0 if FLASH else 4 * tokens * LENGTH * HEADS / model
    logits = 4 * tokens * WORDS / model
    kept = x if remat else (4 + 8 / model) * x + scores  # by each layer

    memory = 12 * owned  # state
    memory += 4 * owned * (2 if micro > 1 else 1)  # gradients, and their sum
    memory += L * kept / micro  # activations that all layers keep, of a microbatch
    memory += (scores + logits) / micro  # of the current layer, and the output
    memory += 4 * LAYER / model  # a layer's gathered weights and their gradients
    sent = 3 * micro * (fsdp - 1) / fsdp * 2 * N / model  # FSDP
    sent += 2 * (data - 1) / data * 4 * owned  # DDP
    sent += (5 if remat else 4) * L * 2 * (model - 1) / model * x  # Megatron
    flops = (8 if remat else 6) * N * tokens / model
    return memory / 1e9, flops / C, sent / W


def plans():  # all grids in powers of two that divide evenly
    sizes = [2**i for i in range(CHIPS.bit_length())]
    for data, fsdp, model, micro in product(sizes, repeat=4):
        divides = SEQUENCES % (data * fsdp * micro) == 0 and HEADS % model == 0
        if data * fsdp * model == CHIPS and divides:
            yield from ((data, fsdp, model, micro, remat) for remat in (True, False))


ranked = []
for plan in plans():
    memory, computes, sends = price(*plan)
    seconds = float(f"{max(computes, sends):.2g}")  # the estimate is good to two digits
    if memory < GB:  # break ties by the time without overlap
        ranked.append((seconds, computes + sends, memory, computes, sends, plan))
ranked.sort()
print(f"{len(ranked)} of {len(list(plans()))} plans fit, by the estimate.")
print("data fsdp model micro remat |    GB  computes    sends")
for _, _, memory, computes, sends, plan in ranked[:5]:
    sizes = "{:4} {:4} {:5} {:5} {!s:>5}".format(*plan)
    print(f"{sizes} | {memory:5.1f} {computes:8.3f}s {sends:7.3f}s")
if ranked:
    steps = 20 * N / (SEQUENCES * LENGTH)  # 20 tokens per parameter
    hours = [steps * t / 3600 for t in (max(ranked[0][3:5]), ranked[0][1])]
    low, high = hours  # computing and sending overlap perfectly, or not at all
    cost = f"{low * CHIPS:,.0f} to {high * CHIPS:,.0f} chip-hours"
    print(f"At full speed, the best plan takes {low:.0f} to {high:.0f} hours, {cost}.")
