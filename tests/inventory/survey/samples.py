"""The recorded outputs in `data/`."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "data"


def sample(name: str) -> str:
    return (FOLDER / name).read_text()
