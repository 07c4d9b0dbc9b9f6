"""Reads users' YAML files, reporting all mistakes at once."""

import sys
from collections.abc import Iterator, Sequence
from errno import EFBIG
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from moorage.adapters.files.safe_files import expanded, read_small
from moorage.common.failures import Cause, Failure
from moorage.common.strict_yaml import LARGEST_TEXT, YamlError, decode, places
from moorage.inventory.fleet import Fleet
from moorage.reports.problems import Problem, excerpt, nearest_of, problems_of
from moorage.spec import ModelSpec

Model = TypeVar("Model", bound=BaseModel)

FLEET_FILE = "fleet.yaml"
"""Name of the fleet file next to the specs; without it the fleet is this machine."""

POLICY_FILE = "policy.yaml"
"""Name of the policy file next to the specs, in `deployments/`; without it the default applies."""

OTHER_FILES = frozenset({FLEET_FILE, POLICY_FILE})

NO_FILE = "there is no such file"

STDIN = Path("-")
"""Path that stands for standard input."""

WHOLE_FILE = "Correct the file; `moorage init NAME SOURCE` writes one to start from."
"""Suggestion for a spec file that is wrong as a whole, not in a field."""

POLICY_ADVICE = "Correct the policy file named above; `moorage explain policy` lists its fields."


class InvalidFile(Failure):
    """A file with mistakes, all listed in `problems`."""

    def __init__(self, cause: Cause, problems: list[Problem]) -> None:
        is_whole = cause == Cause.BAD_SPEC and not any(one.path for one in problems)
        advice = WHOLE_FILE if is_whole else POLICY_ADVICE if cause == Cause.BAD_SETTING else None
        super().__init__(cause, "\n".join(map(str, problems)), suggestion=advice)
        self.problems = problems

    def __reduce__(self) -> tuple[object, ...]:
        return InvalidFile, (self.cause, self.problems)

    @property
    def content(self) -> dict[str, Any]:
        """The problems."""
        return {"problems": self.problems}


def load_spec(path: Path) -> ModelSpec:
    """Read a model spec as `load_file`; its `file://` sources may be relative to its folder."""
    text, content = _read(path, Cause.BAD_SPEC)
    for holder, key in _sources(content):
        holder[key] = absolute(holder[key], path.parent)
    return _loaded(content, text, ModelSpec, path, Cause.BAD_SPEC)


def absolute(source: str, folder: Path) -> str:
    """Make a `file://` source absolute, relative to a folder; other sources stay unchanged."""
    directory = source.removeprefix("file://")
    if directory in ("", source):
        return source
    return f"file://{(folder / expanded(directory)).resolve()}"


def load_fleet(path: Path | None, spec_file: Path | None = None) -> Fleet:
    """Read a fleet as `load_file`; by default `fleet.yaml` next to the spec, else this machine."""
    if path is None and spec_file is not None and (found := spec_file.parent / FLEET_FILE).exists():
        path = found
    if path is None:
        return Fleet()
    text, content = _read(path, Cause.BAD_FLEET)
    fleet = _loaded(content, text, Fleet, path, Cause.BAD_FLEET)
    if problems := [problem.placed(places(text)) for problem in _unknown_avoided(fleet, path)]:
        raise InvalidFile(Cause.BAD_FLEET, problems)
    return fleet


def load_file(path: Path, model: type[Model], cause: Cause) -> Model:
    """Read a file as a model; raises `InvalidFile` with the cause and every mistake."""
    text, content = _read(path, cause)
    return _loaded(content, text, model, path, cause)


def _unknown_avoided(fleet: Fleet, path: Path) -> Iterator[Problem]:
    """Avoided hosts that a file does not list.

    `Fleet` itself allows them: a reconcile avoids the host of a release that its fleet lost.
    """
    names = [host.name for host in fleet.hosts]
    for at, one in enumerate(fleet.avoid):
        if one.host not in names:
            why = f"found {one.host}, which is no host of this fleet; keep it under `hosts`, too."
            field, near = f"avoid[{at}].host", nearest_of(one.host, names)
            yield Problem(file=str(path), path=field, found=one.host, message=why, nearest=near)


def _sources(content: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Places of the sources in a spec: of the model, its adapters and its draft model."""
    adapters = content.get("lora")
    listed = adapters if isinstance(adapters, list) else []
    places = [(content, "source"), (content.get("speculative"), "model")]
    for holder, key in (*places, *((adapter, "source") for adapter in listed)):
        if isinstance(holder, dict) and isinstance(holder.get(key), str):
            yield holder, key


def _read(path: Path, cause: Cause) -> tuple[bytes, dict[str, Any]]:
    """The text of a small YAML file or of standard input, and its keys and values."""
    try:
        text = _read_input() if path == STDIN else read_small(path, LARGEST_TEXT)
        content = decode(text)
    except FileNotFoundError as error:
        names = sorted(str(other) for other in path.parent.glob("[!.]*.yaml"))
        others = f"Files in that folder: {', '.join(names[:10])}." if names else None
        raise Failure(cause, f"{path}: {NO_FILE}", suggestion=others) from error
    except OSError as error:
        raise invalid_file(cause, path, error.strerror or str(error)) from error
    except YamlError as error:
        raise invalid_file(cause, path, str(error), error.path, error.place) from error
    if content is None:
        raise invalid_file(cause, path, "the file is empty")
    if not isinstance(content, dict):
        raise invalid_file(cause, path, f"must hold keys and values, found {excerpt(content)}")
    return text, content


def _read_input() -> bytes:
    text = sys.stdin.buffer.read(LARGEST_TEXT + 1)
    if len(text) > LARGEST_TEXT:
        raise OSError(EFBIG, f"is larger than {LARGEST_TEXT} bytes")
    return text


def invalid_file(
    cause: Cause, path: Path, message: str, field: str = "", place: str = ""
) -> InvalidFile:
    """The failure for one mistake in a file."""
    problem = Problem(file=str(path), path=field, found="", message=message, place=place)
    return InvalidFile(cause, [problem])


def validated_spec(content: dict[str, Any], path: Path | None = None) -> ModelSpec:
    """A spec from content that no file has yet; raises `InvalidFile` with every mistake."""
    return _loaded(content, b"", ModelSpec, path, Cause.BAD_SPEC)


def _loaded(
    content: dict[str, Any], text: bytes, model: type[Model], path: Path | None, cause: Cause
) -> Model:
    """The content as a value; each mistake gets its place in the text, if there is one."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        found = places(text) if text else {}
        placed = [problem.placed(found) for problem in problems_of(error, model, str(path or ""))]
        raise InvalidFile(cause, sorted(placed, key=Problem.position)) from error


def load_specs(paths: Sequence[Path]) -> list[ModelSpec]:
    """Read the specs of files and folders; within a folder, in the order of file names.

    Raises:
        Failure: `BAD_SPEC` with the mistakes of all files, or when two specs have the same name.
    """
    specs: dict[str, tuple[Path, ModelSpec]] = {}
    problems: list[Problem] = []
    missing: dict[Path, Failure] = {}
    files = (spec_files(path) if path.is_dir() else [path] for path in paths)
    for path in dict.fromkeys(chain.from_iterable(files)):
        try:
            spec = load_spec(path)
        except InvalidFile as failure:
            problems += failure.problems
            continue
        except Failure as failure:
            missing[path] = failure
            continue
        first, _ = specs.setdefault(spec.name, (path, spec))
        if first != path:
            message = f"{spec.name} is served by {first} already"
            problems.append(Problem(file=str(path), path="name", found=spec.name, message=message))
    if len(missing) == 1 and not problems:
        raise missing.popitem()[1]  # it names the files that are there
    problems += [Problem(file=str(path), path="", found="", message=NO_FILE) for path in missing]
    if problems:
        raise InvalidFile(Cause.BAD_SPEC, problems)
    return [spec for _, spec in specs.values()]


def spec_names(folder: Path) -> list[str]:
    """Names of the specs in a folder: their file names without `.yaml`."""
    files = (one for one in folder.glob("*.yaml") if not one.name.startswith("."))
    return sorted(one.stem for one in files if one.name not in OTHER_FILES)


def spec_files(folder: Path) -> list[Path]:
    """Files of a folder whose names mark them as specs, in order.

    Hidden files are none: editors and file systems leave `.#a.yaml` and `._a.yaml` next to a spec.
    """
    inside = (one for one in sorted(folder.iterdir()) if one.suffix in (".yaml", ".yml"))
    return [one for one in inside if one.name not in OTHER_FILES and not one.name.startswith(".")]


def load_hosts(fleet: Path | None, paths: Sequence[Path]) -> Fleet:
    """Read the fleet from the named file, otherwise from the folders of the specs.

    Raises:
        Failure: `BAD_FLEET`, also when two folders have different fleets.
    """
    if fleet:
        return load_fleet(fleet)
    folders = (path if path.is_dir() else path.parent for path in paths)
    first, *others = dict.fromkeys(folder / FLEET_FILE for folder in folders)
    hosts = load_fleet(None, first)
    for other in others:
        if load_fleet(None, other) != hosts:
            raise Failure(
                Cause.BAD_FLEET,
                f"found two fleets: {_fleet_name(first)} and {_fleet_name(other)}",
                suggestion="Name the fleet of all these models with `--fleet FILE`, or deploy each"
                " folder by itself.",
            )
    return hosts


def _fleet_name(file: Path) -> str:
    return str(file) if file.exists() else f"this machine, since there is no {file}"
