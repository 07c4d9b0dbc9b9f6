"""Writes specs and fleet files as a user would."""

import io
from collections.abc import Sequence
from contextlib import suppress
from errno import EEXIST
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from moorage.adapters.files.safe_files import read_small
from moorage.adapters.files.specs import FLEET_FILE, OTHER_FILES, load_fleet
from moorage.adapters.system.os_errors import unwritten
from moorage.common.failures import Cause, Failure
from moorage.common.strict_yaml import LARGEST_TEXT
from moorage.spec import ModelSpec


def write_specs(folder: Path, specs: Sequence[ModelSpec], *, overwrite: bool) -> list[Path]:
    """Write each spec as a user would, without default values.

    Raises:
        Failure: `STORE_UNWRITABLE`; no file is written if one exists with another content.
    """
    texts = {folder / name: spec_text(spec) for name, spec in _named(specs).items()}
    _write(texts, overwrite=overwrite)
    return list(texts)


def write_fleet(folder: Path, file: Path, *, overwrite: bool) -> Path:
    """Copy a fleet file unchanged, since all its paths are absolute."""
    load_fleet(file)
    text = read_small(file, LARGEST_TEXT).decode()
    _write({folder / FLEET_FILE: text}, overwrite=overwrite)
    return folder / FLEET_FILE


def write_new(path: Path, text: str) -> None:
    """Write a new file; raises `BAD_SETTING` when it exists, and `STORE_UNWRITABLE`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        advice = f"Edit it, or choose another name; `moorage plan {path.stem}` shows what it means."
        raise Failure(Cause.BAD_SETTING, f"{path} exists", suggestion=advice) from None
    except OSError as error:
        raise unwritten(path, error) from error


def spec_text(spec: ModelSpec) -> str:
    """A spec as YAML that reads back as the same spec."""
    yaml = YAML()
    yaml.width = 4096  # folding a line would change the text in some places
    content: dict[str, Any] = spec.model_dump(mode="json", exclude_defaults=True)
    stream = io.StringIO()
    yaml.dump(content, stream)
    return stream.getvalue()


def _named(specs: Sequence[ModelSpec]) -> dict[str, ModelSpec]:
    """Specs by file name; the names avoid the fleet's and policy's files and differ beyond case."""
    taken, named = {*OTHER_FILES}, {}
    for spec in specs:
        name = f"{spec.name}.yaml"
        while name.lower() in taken:
            name = f"model-{name}"
        taken.add(name.lower())
        named[name] = spec
    return named


def _write(texts: dict[Path, str], *, overwrite: bool) -> None:
    differ = [path for path, text in texts.items() if path.exists() and not _holds(path, text)]
    if differ and not overwrite:
        raise Failure(
            Cause.STORE_UNWRITABLE,
            f"{', '.join(map(str, differ))}: there is another text already",
            suggestion="Export into an empty folder, or replace the files with `--overwrite`.",
        )
    try:
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists() and not path.is_file():
                raise FileExistsError(EEXIST, "there is something that is no file")
            path.write_text(text)
    except OSError as error:
        raise Failure(
            Cause.STORE_UNWRITABLE,
            f"{path}: {error.strerror}",
            suggestion="Export into a folder where you may write, on a disk with room.",
        ) from error


def _holds(path: Path, text: str) -> bool:
    with suppress(OSError):
        return read_small(path, len(text.encode())) == text.encode()
    return False
