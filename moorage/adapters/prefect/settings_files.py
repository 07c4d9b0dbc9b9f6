"""Reads the places of Prefect's settings without importing Prefect, which takes seconds.

These are the places of Prefect 3.8 (`prefect/settings/sources.py`): variables, files in the folder
in which a command runs, and the profiles in Prefect's home.
"""

import tomllib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from moorage.adapters.files.safe_files import read_small

VARIABLES = ("PREFECT_API_URL", "PREFECT_PROFILE", "PREFECT_PROFILES_PATH")
"""Variables that may set the address of an API."""

FILES = (".env", "prefect.toml", "pyproject.toml")
FILE_BYTES = 1 << 20
"""Size limit of a file. The content of a longer or unreadable file counts as unknown."""

FileSettings = tuple[str | None, ...]
"""The content of each file; None = missing, or a `pyproject.toml` without Prefect's settings."""


def may_know_a_server(folder: Path, environment: Mapping[str, str]) -> bool:
    """Whether Prefect's settings may name an API, for a command in this folder."""
    if any(map(environment.get, VARIABLES)):
        return True
    return any(one is not None for one in settings_in_files(folder, environment))


def settings_in_files(folder: Path, environment: Mapping[str, str]) -> FileSettings:
    """Prefect's settings in files, for a command in this folder with these variables."""
    home = Path(environment.get("PREFECT_HOME") or "~/.prefect").expanduser()
    profiles = Path(environment.get("PREFECT_PROFILES_PATH") or home / "profiles.toml")
    return tuple(_settings(path) for path in (*(folder / name for name in FILES), profiles))


def _settings(path: Path) -> str | None:
    if not path.is_file():
        return None
    try:
        content = read_small(path, FILE_BYTES).decode(errors="replace")
    except OSError:
        return ""
    if path.name != FILES[-1]:
        return content
    if "prefect" not in content:
        return None
    with suppress(tomllib.TOMLDecodeError):
        tools = tomllib.loads(content).get("tool", {})
        return repr(tools["prefect"]) if "prefect" in tools else None
    return content
