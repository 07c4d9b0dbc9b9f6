"""What no field may hold: secrets in clear, ways out of a folder, words that would be options."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from pydantic_core import PydanticCustomError

from moorage.common.redaction import has_password, looks_like_a_secret

IN_CLEAR = "secret_in_clear"
"""Type of the error; whoever shows it leaves out what was found."""

SECRET_NAME = re.compile(
    r"(?i)(^|_)(TOKEN|PASSWORD|PASSWD|SECRET|API_?KEY|ACCESS_KEY|SECRET_KEY|PRIVATE_KEY)$"
)
SECRET_OPTION = re.compile(r"--(api[-_]key|hf[-_]token|token|password|secret)")
NO_SECRET = re.compile(r"(?i)|\d+|true|false|yes|no|on|off|none|/.*")
"""Values of such variables that tell nothing: switches, numbers and paths."""

DATA_DIRECTORY = re.compile(r"\{\s*data_dir\s*\}")

RESERVED = re.compile(r"MOORAGE_.*|BASH_ENV|ENV|SHELLOPTS|IFS|LD_AUDIT")
"""Variables that are moorage's own, or change what a shell or loader does before the engine."""

LOADERS = re.compile(r"LD_.*|DYLD_.*|PATH|PYTHON.*|BASHOPTS|PERL5.*|NODE_OPTIONS")
"""Variables that say which code runs; no secret belongs there."""

SYSTEM = re.compile(r"/(proc|sys|etc|boot|run|dev(?!/shm/)|var/run)?(/.*)?")
"""Folders of a system: no model lies there, and a container would read them."""


def plain_environment(env: Mapping[str, str]) -> None:
    """Refuse variables that hold secrets or are not the user's to set.

    Raises:
        ValueError: Without the value.
    """
    for name, value in env.items():
        if RESERVED.fullmatch(name):
            raise ValueError(f"{name} is not to be set")
        if SECRET_NAME.search(name) and not NO_SECRET.fullmatch(value):
            raise _in_clear(name, f"secrets: {{{name}: NAME}}")
        _require_plain(name, value)


def plain_words(words: Iterable[str]) -> None:
    """Refuse secrets and zero bytes in words of a command line.

    Raises:
        ValueError: Without the word.
    """
    for word in words:
        _require_plain("a word", word)


def no_data_directory(words: Iterable[str]) -> None:
    """Refuse GPUStack's placeholder of a directory that no engine sees here.

    Raises:
        ValueError: With what to use.
    """
    if any(DATA_DIRECTORY.search(word) for word in words):
        raise ValueError(
            "`{data_dir}` is filled in by GPUStack alone; an engine sees the directory of its model"
            " and no other. Put the file there: `{{model_path}}` is that directory in"
            " `engine.command` and `engine.entrypoint`, `/models/NAME` in the `engine.args` of a"
            " container. Adapters belong in `lora`, a draft model in `speculative.model`"
        )


def no_secret_options(words: Iterable[str]) -> None:
    """Refuse options whose value is a secret: records, logs and processes show command lines.

    Raises:
        ValueError: Without the value.
    """
    if option := secret_option(words):
        raise PydanticCustomError(
            IN_CLEAR,
            "{option} would show its secret on the command line; use `secrets`, and where the"
            " program reads no variable `sh -c 'exec PROGRAM {option} \"$NAME\"'`",
            {"option": option},
        )


def secret_option(words: Iterable[str]) -> str:
    """The first option whose value is a secret, without that; empty where there is none."""
    options = (word.partition("=")[0] for word in words)
    return next(filter(SECRET_OPTION.fullmatch, options), "")


def plain_arguments(words: Iterable[str]) -> None:
    """Refuse the same, and the word after which options are none any more.

    Raises:
        ValueError: Without the word.
    """
    if "--" in (words := tuple(words)):
        raise ValueError("'--' would end the options, derived ones too")
    plain_words(words)


def starts_with_a_program(words: Iterable[str]) -> None:
    """Refuse a command line whose first word is no program.

    Raises:
        ValueError: When it is empty or an option.
    """
    first = next(iter(words), "x")
    if not first or first.startswith("-"):
        raise ValueError(f"the first word is the program, and {first!r} is none")


def secret_variable(name: str) -> str:
    """A variable that may be filled with a secret.

    Raises:
        ValueError: When it is not the user's to set, or says which code runs.
    """
    if RESERVED.fullmatch(name) or LOADERS.fullmatch(name):
        raise ValueError(f"{name} is no variable for a secret")
    return name


def a_name(name: str) -> str:
    """The name of a secret.

    Raises:
        ValueError: When it looks like the secret itself, without showing it.
    """
    if looks_like_a_secret(name):
        raise PydanticCustomError(IN_CLEAR, "holds the secret itself; only its name belongs here")
    return name


def stays_below(path: str) -> str:
    """A path without steps that lead elsewhere than it says.

    Raises:
        ValueError: For `.`, `..`, empty steps and control characters.
    """
    if any(step in ("", ".", "..") for step in path.strip("/").split("/")) and path != "/":
        raise ValueError("must not contain '.', '..' or '//'")
    if not path.isprintable():
        raise ValueError("must not contain control characters")
    return path


def own_folder(path: str) -> str:
    """The folder of a model or of a store.

    Raises:
        ValueError: For a folder of the system.
    """
    stays_below(path)
    if is_of_the_system(path):
        raise ValueError(
            f"{path} is a folder of the system, which no `file_roots` of a policy can allow"
        )
    return path


def is_of_the_system(path: str) -> bool:
    """Whether an absolute path is a folder of the operating system, or lies in one."""
    return bool(SYSTEM.fullmatch(path))


def _require_plain(what: str, value: str) -> None:
    if "\0" in value:
        raise ValueError(f"{what} must not contain a zero byte")
    if looks_like_a_secret(value) or has_password(value):
        raise _in_clear(what, "secrets")


def _in_clear(what: str, field: str) -> PydanticCustomError:
    return PydanticCustomError(
        IN_CLEAR, "{what} holds a secret in clear; use `{field}`", {"what": what, "field": field}
    )
