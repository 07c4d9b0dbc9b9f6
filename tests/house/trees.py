"""Small trees on disk, as the house is measured on them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from scripts.house.source_tree import SourceTree

CONTRACTS = """
[[tool.importlinter.contracts]]
type = "layers"
containers = ["moorage"]
layers = ["cli", "adapters", "placement", "spec : memory"]

[[tool.importlinter.contracts]]
type = "layers"
layers = ["moorage.cli", "flows", "tasks", "moorage.adapters"]
"""


def make_tree(root: Path, files: Mapping[str, str]) -> SourceTree:
    """Write files of Python and the contracts below a folder."""
    (root / "pyproject.toml").write_text(CONTRACTS)
    for path, text in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return SourceTree(root)
