"""Figures with a description: the notebook shows the one and gives the other to screen readers and to the tests."""

from __future__ import annotations

import io
from typing import Any

from matplotlib.figure import Figure
from PIL import Image

# Okabe and Ito's eight colours, told apart by people with any kind of colour vision (jfly.uni-koeln.de/color).
COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
DPI = 160  # twice the size at which it is shown, so that it is sharp on a dense screen


class Picture:
    """A matplotlib figure and its description; as the last line of a cell it shows itself."""

    def __init__(self, figure: Figure, alt: str) -> None:
        """Raises ValueError where the description is empty."""
        if not alt.strip():
            raise ValueError("a figure needs a description for people who cannot see it")
        self.figure, self.alt = figure, alt

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict, dict]:
        drawn, buffer = io.BytesIO(), io.BytesIO()
        self.figure.savefig(drawn, format="png", dpi=DPI, facecolor="white")  # white: it survives dark mode
        # A palette is a third of the size, which a repository of notebooks feels. With 64 colours some shades of eight
        # colours take the hue of another (lesson 07); with 128 nobody sees a difference.
        Image.open(drawn).convert("RGB").quantize(128, dither=Image.Dither.NONE).save(buffer, "png", optimize=True)
        width = round(self.figure.get_figwidth() * DPI / 2)
        data = {"image/png": buffer.getvalue(), "text/plain": f"Figure: {self.alt}"}
        return data, {"image/png": {"alt": self.alt, "width": width}}


def picture(figure: Figure, alt: str) -> Picture:
    """Show a figure that you drew with pyplot, once, with a description. Raises ValueError where that is empty."""
    from matplotlib import pyplot

    pyplot.close(figure)  # else the notebook shows it a second time, without the description
    figure.set_layout_engine("tight")
    return Picture(figure, alt)
