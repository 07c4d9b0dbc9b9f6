"""Measure the house: `python -m scripts.house --help`."""

from __future__ import annotations

import argparse
from pathlib import Path

from scripts.house.measures import Measures, measure
from scripts.house.page import picture, table, update
from scripts.house.source_tree import SourceTree, tree_at

REPOSITORY = Path(__file__).parents[2]


def main() -> None:
    """Print the measures of a tree, or draw its rooms."""
    arguments = _arguments()
    tree = SourceTree(arguments.path)
    if arguments.update:
        update(arguments.update, picture(tree))
    else:
        print(table(measure(tree), _before(arguments)))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m scripts.house", description=main.__doc__)
    parser.add_argument("path", nargs="?", type=Path, default=REPOSITORY, help="Root of the tree.")
    parser.add_argument("--against", metavar="REV", help="Compare with a git revision.")
    parser.add_argument("--update", metavar="FILE", type=Path, help="Renew the picture in a file.")
    return parser.parse_args()


def _before(arguments: argparse.Namespace) -> Measures | None:
    if not arguments.against:
        return None
    with tree_at(arguments.against, arguments.path) as tree:
        return measure(tree)


if __name__ == "__main__":
    main()
