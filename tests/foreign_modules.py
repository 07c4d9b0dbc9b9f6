"""A folder of a person's project, with modules that have the names of others."""

from __future__ import annotations

from pathlib import Path

NAMES = ("flows", "json", "prefect", "secrets", "tasks")
IMPORTED = 'raise ImportError(f"{__file__} is no module of moorage")\n'


def foreign_modules(folder: Path) -> Path:
    """Make the folder; whoever imports one of its modules fails."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        (folder / f"{name}.py").write_text(IMPORTED)
    return folder
