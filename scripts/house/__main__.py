"""Measure the house: `python -m scripts.house --help`."""

from __future__ import annotations

import argparse
from pathlib import Path

from scripts.house.measures import measure, size_of
from scripts.house.page import picture, table, update
from scripts.house.source_tree import SourceTree, descendants, tree_at

REPOSITORY = Path(__file__).parents[2]


def main() -> None:
    """Print the measures of a tree, or draw its rooms."""
    arguments = _arguments()
    tree = SourceTree(arguments.path)
    if arguments.update:
        update(arguments.update, picture(tree))
    else:
        print(_table(tree, arguments.against))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m scripts.house", description=main.__doc__)
    parser.add_argument("path", nargs="?", type=Path, default=REPOSITORY, help="Root of the tree.")
    parser.add_argument("--against", metavar="REV", help="Compare with a git revision.")
    parser.add_argument("--update", metavar="FILE", type=Path, help="Renew the picture in a file.")
    return parser.parse_args()


def _table(tree: SourceTree, revision: str | None) -> str:
    now = measure(tree)
    if revision is None:
        return table(now)
    paths = descendants(revision, tree.root)
    kept = size_of(one for one in tree.modules.values() if one.path in paths)
    with tree_at(revision, tree.root) as earlier:
        return table(now, measure(earlier), kept)


if __name__ == "__main__":
    main()
