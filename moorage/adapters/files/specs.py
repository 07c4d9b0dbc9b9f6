"""Reading the YAML files that users write; all mistakes of a file are reported together."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from moorage.adapters.files.regular_files import read_small
from moorage.common.failures import Cause, Failure
from moorage.common.strict_yaml import LIMITS, YamlError, decode
from moorage.inventory.fleet import Fleet
from moorage.reports.problems import Problem, excerpt, problems_of
from moorage.spec import ModelSpec

Model = TypeVar("Model", bound=BaseModel)

FLEET_FILE = "fleet.yaml"
"""Beside the specs; without it the fleet is this machine."""

POLICY_FILE = "policy.yaml"
"""Beside the specs, in `deployments/`; without it the default policy counts."""

OTHER_FILES = frozenset({FLEET_FILE, POLICY_FILE})
"""Files among specs that hold none."""


class InvalidFile(Failure):
    """A file with mistakes; `problems` holds each of them."""

    def __init__(self, cause: Cause, problems: list[Problem]) -> None:
        super().__init__(cause, "\n".join(map(str, problems)))
        self.problems = problems

    def __reduce__(self) -> tuple[object, ...]:
        return InvalidFile, (self.cause, self.problems)


def load_spec(path: Path) -> ModelSpec:
    """Read a model spec. Relative `file://` sources start at the file's folder.

    Raises:
        InvalidFile: `BAD_SPEC` with every mistake.
    """
    content = load_mapping(path, Cause.BAD_SPEC)
    for holder, key in _sources(content):
        holder[key] = absolute(holder[key], path.parent)
    return _validate(content, ModelSpec, path, Cause.BAD_SPEC)


def absolute(source: str, folder: Path) -> str:
    """A `file://` source whose relative directory starts at a folder; any other as it is."""
    directory = source.removeprefix("file://")
    if directory in ("", source):
        return source
    return f"file://{(folder / Path(directory).expanduser()).resolve()}"


def load_fleet(path: Path | None, spec_file: Path | None = None) -> Fleet:
    """Read a fleet file.

    Args:
        path: The file; None = `fleet.yaml` in the spec's folder if it exists, else this machine.
        spec_file: The spec's file.

    Raises:
        InvalidFile: `BAD_FLEET` with every mistake.
    """
    if path is None and spec_file is not None and (found := spec_file.parent / FLEET_FILE).exists():
        path = found
    if path is None:
        return Fleet()
    return _validate(load_mapping(path, Cause.BAD_FLEET), Fleet, path, Cause.BAD_FLEET)


def load_file(path: Path, model: type[Model], cause: Cause) -> Model:
    """Read any other file of a model.

    Raises:
        InvalidFile: With the cause, and every mistake.
    """
    return _validate(load_mapping(path, cause), model, path, cause)


def _sources(content: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Where a spec may name a source: the model's, its adapters', its draft model's."""
    adapters = content.get("lora")
    listed = adapters if isinstance(adapters, list) else []
    places = [(content, "source"), (content.get("speculative"), "model")]
    for holder, key in (*places, *((adapter, "source") for adapter in listed)):
        if isinstance(holder, dict) and isinstance(holder.get(key), str):
            yield holder, key


def load_mapping(path: Path, cause: Cause) -> dict[str, Any]:
    """Read a YAML file that holds keys and values.

    Raises:
        Failure: Of that cause, when it is not there or holds something else.
    """
    try:
        content = decode(read_small(path, LIMITS.size))
    except FileNotFoundError as error:
        raise Failure(
            cause, f"{path}: there is no such file", suggestion=_other_files(path)
        ) from error
    except OSError as error:
        raise _invalid(cause, path, error.strerror or str(error)) from error
    except YamlError as error:
        raise _invalid(cause, path, str(error), error.path) from error
    if not isinstance(content, dict):
        found = f"must hold keys and values, found {excerpt(content)}"
        raise _invalid(cause, path, found)
    return content


def _invalid(cause: Cause, path: Path, message: str, field: str = "") -> InvalidFile:
    return InvalidFile(cause, [Problem(file=str(path), path=field, found="", message=message)])


def _other_files(path: Path) -> str | None:
    names = sorted(str(other) for other in path.parent.glob("*.yaml"))
    return f"There are: {', '.join(names[:10])}." if names else None


def _validate(content: dict[str, Any], model: type[Model], path: Path, cause: Cause) -> Model:
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise InvalidFile(cause, problems_of(error, model, str(path))) from error
