"""What is meant to run, as files: one for each model, and the fleet."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from contextlib import suppress
from errno import EEXIST
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from moorage.adapters.files.regular_files import read_small
from moorage.adapters.files.specs import FLEET_FILE, OTHER_FILES, InvalidFile, load_fleet, load_spec
from moorage.common.failures import Cause, Failure
from moorage.common.strict_yaml import LIMITS
from moorage.inventory.fleet import Fleet
from moorage.reports.problems import Problem
from moorage.spec import ModelSpec

ENDINGS = (".yaml", ".yml")


def load_specs(paths: Sequence[Path]) -> list[ModelSpec]:
    """Read the specs of files and folders, those of a folder in the order of their names.

    Raises:
        Failure: `BAD_SPEC` with the mistakes of all files, also when two serve one name.
    """
    specs: dict[str, tuple[Path, ModelSpec]] = {}
    problems: list[Problem] = []
    for path in _files(paths):
        try:
            spec = load_spec(path)
        except InvalidFile as failure:
            problems += failure.problems
            continue
        if spec.name in specs:
            message = f"{spec.name} is served by {specs[spec.name][0]} already"
            problems.append(Problem(file=str(path), path="name", found=spec.name, message=message))
        specs.setdefault(spec.name, (path, spec))
    if problems:
        raise InvalidFile(Cause.BAD_SPEC, problems)
    return [spec for _, spec in specs.values()]


def load_hosts(fleet: Path | None, paths: Sequence[Path]) -> Fleet:
    """Read the fleet: the named file, else the one in the folder of the first spec."""
    first = paths[0]
    return load_fleet(fleet, first / FLEET_FILE if first.is_dir() else first)


def write_specs(folder: Path, specs: Sequence[ModelSpec], *, overwrite: bool) -> list[Path]:
    """Write each spec as its user would: only what is not the default.

    Raises:
        Failure: `STORE_UNWRITABLE` when a file says something else already; then none is written.
    """
    names = _names(specs)
    texts = {folder / names[spec.name]: spec_text(spec) for spec in specs}
    _write(texts, overwrite=overwrite)
    return list(texts)


def write_fleet(folder: Path, file: Path, *, overwrite: bool) -> Path:
    """Write a fleet file as it is; every path in one is absolute."""
    load_fleet(file)
    text = read_small(file, LIMITS.size).decode()
    _write({folder / FLEET_FILE: text}, overwrite=overwrite)
    return folder / FLEET_FILE


def spec_text(spec: ModelSpec) -> str:
    """A spec as YAML that reads back as the same spec."""
    yaml = YAML()
    yaml.default_flow_style = False
    yaml.width = 4096  # a folded line would be another text in some places
    content: dict[str, Any] = spec.model_dump(mode="json", exclude_defaults=True)
    stream = io.StringIO()
    yaml.dump(content, stream)
    return stream.getvalue()


def _files(paths: Iterable[Path]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = (one for one in sorted(path.iterdir()) if one.suffix in ENDINGS)
            found += [one for one in inside if one.name not in OTHER_FILES]
        else:
            found.append(path)
    return list(dict.fromkeys(found))


def _names(specs: Sequence[ModelSpec]) -> dict[str, str]:
    """A file name for each model: none is the fleet's, and none differs by case alone."""
    taken, names = {*OTHER_FILES}, {}
    for spec in specs:
        name = f"{spec.name}.yaml"
        while name.lower() in taken:
            name = f"model-{name}"
        taken.add(name.lower())
        names[spec.name] = name
    return names


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
