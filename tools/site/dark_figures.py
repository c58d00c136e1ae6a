"""Draw the figures of the built pages again for the dark theme, with the same colours on a dark background.

Figures are drawn on white in Okabe and Ito's colours. Each pixel is a mixture of one of these colours and a grey: keep
the colour, and invert the grey. Letters on a filled area keep their colour, because the area keeps its own.
"""

from __future__ import annotations

import re
from pathlib import Path

from PIL import Image, ImageFilter

COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")  # as in utils/show
GROUND, INK = 18, 240  # the dark page's background, and the grey that replaces black
FIGURE = re.compile(r'<img\b(?=[^>]*\bsrc="([^"]*_images/([0-9a-f]+)\.png)")(?![^>]*\bdata-dark=)')
GAP, AREA = 9, 17  # px: the largest width of letters and hatching, and the smallest width of filled areas


def _hue(pixel: tuple[int, int, int]) -> float:
    """Return the hue of a colour that isn't grey, in sixths of the circle."""
    red, green, blue = pixel
    chroma = max(pixel) - min(pixel)
    if red == max(pixel):
        return (green - blue) / chroma % 6
    return (blue - red) / chroma + 2 if green == max(pixel) else (red - green) / chroma + 4


def _rgb(color: str) -> tuple[int, int, int]:
    return (int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16))


PALETTE = [(_hue(rgb), rgb) for rgb in map(_rgb, COLORS)]


def _unmix(pixel: tuple[int, int, int], color: tuple[int, int, int]) -> tuple[float, float, tuple[int, int, int]]:
    """Return the share of a palette colour in a pixel, and the grey that it's mixed with."""
    share = min(1.0, (max(pixel) - min(pixel)) / (max(color) - min(color)))
    if share > 0.99:
        return 1.0, 255.0, color
    return share, (min(pixel) - share * min(color)) / (1 - share), color


def darken(pixel: tuple[int, int, int]) -> tuple[tuple[int, int, int], int]:
    """Return a pixel's colour in the dark theme, and a palette colour's share in the original, from 0 to 255."""
    if max(pixel) - min(pixel) <= 4:
        share, grey, color = 0.0, sum(pixel) / 3, (0, 0, 0)
    else:
        hue = _hue(pixel)
        distances = [(min(abs(other - hue), 6 - abs(other - hue)), rgb) for other, rgb in PALETTE]
        # Two of the blues have the same hue. Choose the one that's mixed with the lightest possible grey.
        mixtures = [_unmix(pixel, rgb) for distance, rgb in distances if distance < min(distances)[0] + 0.1]
        share, grey, color = max(mixtures, key=lambda mixture: (mixture[1] <= 260, mixture[1]))
    inverted = INK + (GROUND - INK) * min(max(grey, 0), 255) / 255
    mixed = [round(share * part + (1 - share) * inverted) for part in color]
    return (mixed[0], mixed[1], mixed[2]), round(255 * share)


def dark_version(image: Image.Image) -> Image.Image:
    """Return a figure's version for the dark theme."""
    image = image.convert("RGB")
    parts = iter(image.tobytes())
    pixels = list(zip(parts, parts, parts, strict=True))
    new = {pixel: darken(pixel) for pixel in set(pixels)}
    colors = {pixel: bytes(color) for pixel, (color, _) in new.items()}
    dark = Image.frombytes("RGB", image.size, b"".join([colors[pixel] for pixel in pixels]))
    shares = Image.frombytes("L", image.size, bytes([255 if new[pixel][1] > 150 else 0 for pixel in pixels]))
    # Close the gaps that letters leave in filled areas, and remove lines, which are narrower than areas.
    closed = _filtered(_filtered(shares, ImageFilter.MaxFilter, GAP), ImageFilter.MinFilter, GAP)
    areas = _filtered(_filtered(closed, ImageFilter.MinFilter, AREA), ImageFilter.MaxFilter, AREA)
    return Image.composite(image, dark, areas)


def _filtered(image: Image.Image, kind: type, pixels: int) -> Image.Image:
    """Apply a minimum or maximum filter of an odd width, as a series of filters of 3 pixels, which is faster."""
    for _ in range(pixels // 2):
        image = image.filter(kind(3))
    return image


def write_dark_figures(pages: Path) -> None:
    """Write a dark version of each figure beside it, and put its name into `data-dark` for page_behavior.js."""
    for page in pages.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for source, name in sorted(set(FIGURE.findall(text))):
            original = page.parent / source
            target = original.with_name(f"{name}-dark.png")
            if not target.exists() or target.stat().st_mtime < Path(__file__).stat().st_mtime:
                with Image.open(original) as image:
                    dark_version(image).quantize(256).save(target, optimize=True)
        changed = FIGURE.sub(lambda tag: f'<img data-dark="{tag[1].removesuffix(".png")}-dark.png"', text)
        if changed != text:
            page.write_text(changed, encoding="utf-8")
