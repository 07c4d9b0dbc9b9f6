"""The measures as a table, and the rooms as a picture."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from scripts.house.layers import Arrow, Layers
from scripts.house.measures import Measures, RoomSize
from scripts.house.source_tree import SourceTree

BEGIN, END = "<!-- rooms: begin -->", "<!-- rooms: end -->"
"""The lines before and after the picture in a document."""


def table(now: Measures, before: Measures | None = None, kept: RoomSize | None = None) -> str:
    """Markdown with the counts, the rooms, and the lists behind the current counts.

    Args:
        now: Measures of the current tree.
        before: Measures of another tree, in a separate column.
        kept: Size of the current files that were in the other tree, under whatever name.
    """
    trees = [now] if before is None else [before, now]
    heads = ["now"] if before is None else ["before", "now"]
    counts = [_counts(one) for one in trees]
    rows = [[name, *(str(one[name]) for one in counts)] for name in counts[0]]
    if before and kept:
        rows += [
            ["lines of the files of before", str(before.total.lines), str(kept.lines)],
            ["the files of before", str(before.total.files), str(kept.files)],
        ]
    rooms = dict.fromkeys(room for one in reversed(trees) for room in one.rooms)
    sizes = [[room, *(_size(one.rooms.get(room)) for one in trees)] for room in rooms]
    parts = [
        _grid(["measure", *heads], rows),
        _grid(["room: files, lines", *heads], sizes),
        *(_list(f"files opened for a {name}", paths) for name, paths in now.reading.items()),
        *(_list(name, values) for name, values in _findings(now).items() if values),
    ]
    return "\n\n".join(parts)


def picture(tree: SourceTree) -> str:
    """A Mermaid graph of the imports between rooms.

    Arrows that a longer path implies are left out, and so are upward arrows, which the table lists.
    """
    layers = Layers.of(tree.root)
    up = set(layers.arrows_up(tree))
    arrows = {
        (tree.modules[importer].room, tree.modules[imported].room)
        for importer, imports in tree.imports.items()
        for imported in imports
        if (importer, imported) not in up
    }
    shown = _reduced({arrow for arrow in arrows if arrow[0] != arrow[1]})
    order = {room: index for index, room in enumerate(layers.rooms)}
    lines = [f"    {above} --> {below}" for above, below in sorted(shown, key=_by(order))]
    return "\n".join(["```mermaid", "flowchart TD", *lines, "```"])


def updated(document: str, drawn: str) -> str:
    """A document with its picture replaced.

    Raises:
        ValueError: When the document lacks the lines `BEGIN` and `END`.
    """
    head, begin, rest = document.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"no lines {BEGIN} and {END}")
    return f"{head}{BEGIN}\n{drawn}\n{END}{tail}"


def update(path: Path, drawn: str) -> None:
    """Replace the picture in a file."""
    path.write_text(updated(path.read_text(), drawn))


def _counts(measures: Measures) -> dict[str, int]:
    recurring = measures.duplicate_names.values()
    return {
        "lines": measures.total.lines,
        "files": measures.total.files,
        "arrows up": len(measures.arrows_up),
        "modules outside the layers": len(measures.outside_layers),
        "files under 40 lines": len(measures.small_files),
        "duplicate basenames": len(recurring),
        "files with such a name": sum(map(len, recurring)),
        "functions over 40 lines": len(measures.long_functions),
        "functions with over 6 parameters": len(measures.many_parameters),
    } | {f"files opened for a {name}": len(paths) for name, paths in measures.reading.items()}


def _findings(measures: Measures) -> dict[str, list[str]]:
    return {
        "arrows up": measures.arrows_up,
        "modules outside the layers": measures.outside_layers,
        "functions over 40 lines": measures.long_functions,
        "functions with over 6 parameters": measures.many_parameters,
    }


def _size(size: RoomSize | None) -> str:
    return f"{size.files}, {size.lines}" if size else "-"


def _grid(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]

    def line(cells: Iterable[str]) -> str:
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        return f"| {' | '.join(padded)} |"

    return "\n".join([line(heads), line("-" * width for width in widths), *map(line, rows)])


def _list(title: str, items: Sequence[str]) -> str:
    return "\n".join([f"{title}:", "", *(f"- {item}" for item in items)])


def _reduced(arrows: set[Arrow]) -> set[Arrow]:
    """The arrows of an acyclic graph without those that a longer path implies."""
    below: dict[str, set[str]] = {}
    for above, low in arrows:
        below.setdefault(above, set()).add(low)

    def reaches(start: str, end: str) -> bool:
        return any(low == end or reaches(low, end) for low in below.get(start, ()))

    return {
        (above, low)
        for above, low in arrows
        if not any(reaches(other, low) for other in below[above] - {low})
    }


def _by(order: dict[str, int]) -> Callable[[Arrow], tuple[int, int]]:
    last = len(order)
    return lambda arrow: (order.get(arrow[0], last), order.get(arrow[1], last))
