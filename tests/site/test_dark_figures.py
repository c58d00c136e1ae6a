"""Test that the dark versions of figures keep the colours of lines and areas, and invert black, white and grey."""

from __future__ import annotations

import pytest
from PIL import Image, ImageDraw

from tools.site import dark_figures
from tools.site.dark_figures import COLORS, GROUND, INK


def _luminance(color):
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in (c / 255 for c in color)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(color, other=(GROUND,) * 3):
    light, dark = sorted((_luminance(color), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_black_and_white_are_inverted():
    assert dark_figures.darken((255, 255, 255))[0] == (GROUND,) * 3
    assert dark_figures.darken((0, 0, 0))[0] == (INK,) * 3
    assert contrast((INK,) * 3) > 4.5
    assert contrast(dark_figures.darken((0x99,) * 3)[0]) > 3


@pytest.mark.parametrize("color", COLORS)
def test_a_color_stays_and_its_tint_becomes_dark(color):
    rgb = dark_figures._rgb(color)
    assert dark_figures.darken(rgb) == (rgb, 255)
    assert contrast(rgb) > 3
    tint, share = dark_figures.darken(tuple(round(0.35 * part + 0.65 * 255) for part in rgb))
    assert share == pytest.approx(0.35 * 255, abs=4)
    assert contrast((INK,) * 3, tint) > 4.5


def test_letters_on_a_filled_area_keep_their_color():
    image = Image.new("RGB", (200, 60), "white")
    draw = ImageDraw.Draw(image)
    draw.rectangle((10, 10, 90, 50), fill="#E69F00")
    draw.line((50, 20, 50, 40), fill="black", width=3)
    draw.line((150, 10, 150, 50), fill="black", width=3)
    draw.line((110, 30, 190, 30), fill="#0072B2", width=3)
    dark = dark_figures.dark_version(image)
    assert [dark.getpixel(at) for at in ((50, 30), (150, 20), (20, 20), (120, 30), (2, 2))] == [
        (0, 0, 0),
        (INK,) * 3,
        (0xE6, 0x9F, 0x00),
        (0x00, 0x72, 0xB2),
        (GROUND,) * 3,
    ]


def test_each_figure_of_a_page_gets_a_dark_version_once(tmp_path):
    images = tmp_path / "_images"
    images.mkdir()
    Image.new("RGB", (9, 9), "white").save(images / "0a.png")
    page = tmp_path / "page.html"
    page.write_text('<img alt="x" src="_images/0a.png"/><img src="_static/logo.svg"/>')
    for _ in range(2):
        dark_figures.write_dark_figures(tmp_path)
    assert page.read_text() == (
        '<img data-dark="_images/0a-dark.png" alt="x" src="_images/0a.png"/><img src="_static/logo.svg"/>'
    )
    with Image.open(images / "0a-dark.png") as image:
        assert image.convert("RGB").getpixel((4, 4)) == (GROUND,) * 3
