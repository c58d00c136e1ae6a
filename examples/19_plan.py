"""python plan.py 64 918e12 200e9 32 40 4096 256 2048: rank all plans for 64 TPU v6e.

Chips, FLOP/s, bytes/s in a ring, GB; layers, width, sequences in a step, their length.
Add the word flash where attention stores no scores.
"""

import sys
from itertools import product

FLASH = sys.argv[9:] == ["flash"]
CHIPS, C, W, GB, L, D, SEQUENCES, LENGTH = (int(float(a)) for a in sys.argv[1:9])
HEADS, F, WORDS = D // 128, 4 * D, 32768  # YOURS: heads, hidden features, words
LAYER = 4 * D * D + 2 * D * F  # parameters of a layer
N = L * LAYER + WORDS * D


def price(data, fsdp, model, micro, remat):
    """GB that a chip holds, seconds that it computes, seconds that it sends."""
    tokens = SEQUENCES * LENGTH / (data * fsdp)  # of chips that share them along model
    own, x = N / (fsdp * model), 2 * tokens * D  # parameters; bytes of a layer's input
    scores = 0 if FLASH else 4 * tokens * LENGTH * HEADS / model
    logits = 4 * tokens * WORDS / model
    kept = x if remat else (4 + 8 / model) * x + scores
    holds = 12 * own + 4 * own * (2 if micro > 1 else 1)  # state, gradients
    holds += (L * kept + scores + logits) / micro + 4 * LAYER / model
    sends = 3 * micro * (fsdp - 1) / fsdp * 2 * N / model  # FSDP
    sends += 2 * (data - 1) / data * 4 * own  # DDP
    sends += (5 if remat else 4) * L * 2 * (model - 1) / model * x  # Megatron
    computes = (8 if remat else 6) * N * tokens / model
    return holds / 1e9, computes / C, sends / W


def plans():  # all that divide; sizes are powers of two
    sizes = [2**i for i in range(CHIPS.bit_length())]
    for data, fsdp, model, micro in product(sizes, repeat=4):
        divides = SEQUENCES % (data * fsdp * micro) == 0 and HEADS % model == 0
        if data * fsdp * model == CHIPS and divides:
            yield from ((data, fsdp, model, micro, remat) for remat in (True, False))


ranked = []
for plan in plans():
    holds, computes, sends = price(*plan)
    seconds = float(f"{max(computes, sends):.2g}")  # an estimate has two digits
    if holds < GB:  # in a tie the plan is first that waits least without overlap
        ranked.append((seconds, computes + sends, holds, computes, sends, plan))
ranked.sort()
print(f"{len(ranked)} of {len(list(plans()))} plans fit, by the estimate.")
print("data fsdp model micro remat |    GB  computes    sends")
for _, _, holds, computes, sends, plan in ranked[:5]:
    sizes = "{:4} {:4} {:5} {:5} {!s:>5}".format(*plan)
    print(f"{sizes} | {holds:5.1f} {computes:8.3f}s {sends:7.3f}s")
if ranked:
    steps = 20 * N / (SEQUENCES * LENGTH)  # 20 tokens a parameter
    hours = steps * max(ranked[0][3:5]) / 3600
    print(f"At full speed the first takes {hours:.0f} h, {hours * CHIPS:,.0f} chip-h.")
