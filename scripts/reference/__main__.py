"""Write every generated page and schema into docs/."""

from __future__ import annotations

from pathlib import Path

from scripts.reference.pages import PAGES

DOCS = Path(__file__).parents[2] / "docs"

if __name__ == "__main__":
    for name, page in PAGES.items():
        (DOCS / name).write_text(page())
