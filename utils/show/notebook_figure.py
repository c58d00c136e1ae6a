"""Give each figure a description, which the notebook passes on to screen readers and to the tests."""

from __future__ import annotations

import io
from typing import Any

from matplotlib.figure import Figure
from PIL import Image

from utils.show import FIGURE_DATA

# Okabe and Ito's colours, with grey instead of black. Colour-blind readers can tell them apart, too
# (jfly.uni-koeln.de/color).
COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
PIXELS_PER_INCH = 100  # on the page, where 10-point text is then almost as large as the text around the figure
DPI = 160  # in the image file: higher than on the page, so that figures are sharp on a high-resolution screen


class Picture:
    """A matplotlib figure with a description and, if the site draws it interactively, its numbers as `data`.

    A notebook displays the picture if it's the last expression in a cell.
    """

    def __init__(self, figure: Figure, alt: str, data: Any = None) -> None:
        """Create a picture. Raises ValueError if the description is empty."""
        if not alt.strip():
            raise ValueError("a figure needs a description for people who cannot see it")
        self.figure, self.alt, self.data = figure, alt, data

    def with_data(self, data: Any) -> Picture:
        """Return this picture with numbers for the site's interactive figure, as JSON-compatible lists and dicts."""
        return Picture(self.figure, self.alt, data)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> tuple[dict, dict]:
        buffer, png = io.BytesIO(), io.BytesIO()
        self.figure.savefig(buffer, format="png", dpi=DPI, facecolor="white")  # white even on a dark page
        # A palette reduces the file to a third of its size, which matters in a repository of notebooks. With 64
        # entries, some shades of the eight colours would change hue (lesson 07). With 128, no difference is visible.
        Image.open(buffer).convert("RGB").quantize(128, dither=Image.Dither.NONE).save(png, "png", optimize=True)
        width = round(self.figure.get_figwidth() * PIXELS_PER_INCH)
        data: dict[str, Any] = {"image/png": png.getvalue(), "text/plain": f"Figure: {self.alt}"}
        if self.data is not None:
            data[FIGURE_DATA] = self.data
        return data, {"image/png": {"alt": self.alt, "width": width}}


def picture(figure: Figure, alt: str) -> Picture:
    """Add a description to a figure drawn with pyplot. Raises ValueError if the description is empty."""
    from matplotlib import pyplot

    pyplot.close(figure)  # otherwise the notebook would show it again, without the description
    figure.set_layout_engine("tight")
    return Picture(figure, alt)
