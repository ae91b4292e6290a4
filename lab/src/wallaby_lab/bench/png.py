"""Drawings as PNG: the rectangles, lines and texts of our own SVGs, for where SVG cannot be shown."""

from __future__ import annotations

from io import BytesIO
from typing import Final
from xml.etree.ElementTree import Element, fromstring

from PIL import Image, ImageDraw, ImageFont

#: Pixels for each unit of the drawing.
SCALE: Final = 2
_TEXT: Final = "#1d2530"
#: What the style sheet of `bars_svg` says of each class: its colour and, of texts, its size.
_COLOURS: Final = {"dim": "#5f6b7a", "line": "#d5dbe2", "one": "#1d2530", "paper": "#ffffff"}
_SIZES: Final = {"dim": 11}
_SIZE: Final = 12
#: Where `x` is in a text, as Pillow names it; `y` is its baseline.
_ANCHORS: Final = {"start": "ls", "middle": "ms", "end": "rs"}
_SVG: Final = "{http://www.w3.org/2000/svg}"


def to_png(svg: str) -> bytes:
    """A drawing made by `bars_svg`, as the bytes of a PNG file."""
    root = fromstring(svg)  # noqa: S314 - it was drawn here
    image = Image.new("RGB", (_px(root, "width"), _px(root, "height")), "white")
    canvas = ImageDraw.Draw(image)
    for element in root:
        match element.tag.removeprefix(_SVG):
            case "rect":
                left, top = _px(element, "x"), _px(element, "y")
                right, bottom = left + _px(element, "width"), top + _px(element, "height")
                canvas.rectangle(
                    (left, top, max(right - 1, left), max(bottom - 1, top)), fill=_colour(element)
                )
            case "line":
                ends = [(_px(element, f"x{end}"), _px(element, f"y{end}")) for end in (1, 2)]
                canvas.line(ends, fill=_colour(element), width=SCALE)
            case "text":
                size = _SIZES.get(element.get("class", ""), _SIZE) * SCALE
                canvas.text(
                    (_px(element, "x"), _px(element, "y")),
                    (element.text or "").replace("×", "x"),  # which the font has not
                    fill=_colour(element),
                    font=ImageFont.load_default(size),
                    anchor=_ANCHORS[element.get("text-anchor", "start")],
                )
            case _:
                pass  # the style sheet
    file = BytesIO()
    image.save(file, "PNG", optimize=True)
    return file.getvalue()


def _px(element: Element, name: str) -> int:
    return round(float(element.get(name, "0")) * SCALE)


def _colour(element: Element) -> str:
    return element.get("fill") or _COLOURS.get(element.get("class", ""), _TEXT)
