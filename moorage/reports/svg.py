"""Small pictures for a page: stacked bars of claims, and rows of bars over time."""

from collections.abc import Sequence
from typing import NamedTuple

from moorage.reports.html import Element, element

WIDTH, HEIGHT = 400, 14
STEP, TALL = 9, 28
"""Width and largest height of one bar in a row, in pixels."""


class Part(NamedTuple):
    """A part of a bar.

    Attributes:
        size: In the unit of the whole.
        label: Its meaning, for tooltips and screen readers.
        kind: Class of the style sheet.
    """

    size: float
    label: str
    kind: str


def stacked_bar(parts: Sequence[Part], whole: float) -> Element:
    """Parts side by side, as shares of a whole; parts beyond the whole are cut off."""
    drawn, begin = [_rectangle(0, 0, WIDTH, HEIGHT, "free", "free")], 0.0
    for part in parts:
        width = min(part.size / whole, 1 - begin) * WIDTH if whole else 0.0
        drawn.append(_rectangle(begin * WIDTH, 0, width, HEIGHT, part.kind, part.label))
        begin = min(begin + part.size / whole, 1.0) if whole else begin
    return _picture(WIDTH, HEIGHT, drawn)


def bars(parts: Sequence[Part]) -> Element:
    """Bars next to each other; the largest is as tall as the picture."""
    most = max((part.size for part in parts), default=0) or 1.0
    drawn = []
    for at, part in enumerate(parts):
        tall = max(part.size / most * TALL, 1.0)
        drawn.append(_rectangle(at * STEP, TALL - tall, STEP - 2, tall, part.kind, part.label))
    return _picture(len(parts) * STEP, TALL, drawn)


def _picture(width: float, height: float, drawn: Sequence[Element]) -> Element:
    size = {"width": f"{width:g}", "height": f"{height:g}", "viewBox": f"0 0 {width:g} {height:g}"}
    return element("svg", *drawn, role="img", **size)


def _rectangle(x: float, y: float, width: float, height: float, kind: str, label: str) -> Element:
    place = {"x": f"{x:.1f}", "y": f"{y:.1f}", "width": f"{width:.1f}", "height": f"{height:.1f}"}
    return element("rect", element("title", label), class_=kind, **place)
