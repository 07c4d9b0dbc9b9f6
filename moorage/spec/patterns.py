"""Patterns and checks of a spec's fields.

The checks refuse secrets in clear text, paths out of a folder, and words that would be options.
They raise `ValueError` with messages that show no secret.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Annotated

from pydantic import AfterValidator, Field, JsonValue, StringConstraints
from pydantic_core import PydanticCustomError

from moorage.common.redaction import LOOKS_LIKE, has_password, looks_like_a_secret

NAME_PATTERN = r"^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$"
SOURCE_PATTERN = (
    r"^(hf://[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*|file://[^\x00]+"
    r"|s3://[a-z0-9][a-z0-9.-]+[a-z0-9](/[\w][\w./=+@-]*)?)$"
)
ACCELERATOR_PATTERN = r"^[A-Za-z0-9][\w.-]*:[a-z]+:\d+$"
KIND_PATTERN = r"^[\w* .()/-]+$"
AUTO_FILES = "auto"
"""In place of a pattern of files: a deploy takes the best quantization that fits."""

MISTRAL_FILES = "consolidated*.safetensors*"
"""Weights and index that `--load-format mistral` of vLLM 0.32 loads, and nothing else."""

FILES_PATTERN = r"^[\w*?\[\].@+=/-]+$"
SECRET_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
VARIABLE_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]*$"

VERSION_PATTERN = r"^\d[\w.+-]*$"
IMAGE_PATTERN = (
    r"^(?:(?:[A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9a-fA-F:]+\])(?::[0-9]{1,5})?/)?"
    r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$"
)
"""The distribution project's grammar of references, in ASCII: pydantic would need 0.1 s to compile
a counted `\\w`, which matches the letters of all scripts."""
PATH_PATTERN = r"^/[^\s]*$"
FOLDER_PATTERN = r"^/[\w./+@-]*$"
REVISION_PATTERN = r"^[\w][\w./-]*$"
PACKAGE_PATTERN = (
    r"^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
    r"(?:\[[A-Za-z0-9._-]+(?:, ?[A-Za-z0-9._-]+)*\])?"
    r"(?: ?(?:===?|~=|!=|<=?|>=?) ?[A-Za-z0-9.*+!_-]+"
    r"(?:, ?(?:===?|~=|!=|<=?|>=?) ?[A-Za-z0-9.*+!_-]+)*)?$"
)
"""Name, extras and versions of PEP 508, without addresses and markers; never an option of an
installer."""
CAPABILITY_PATTERN = r"^[A-Z]+_[A-Z_]+$"
GROUP_PATTERN = r"^([a-z_][a-z0-9_-]*|\d+)$"
IMPORT_PATTERN = r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$"
ULIMIT_PATTERN = (
    r"^(core|cpu|data|fsize|locks|memlock|msgqueue|nice|nofile|nproc|rss|rtprio|rttime"
    r"|sigpending|stack)$"
)

PATTERNS_IN_WORDS = {
    NAME_PATTERN: "letters, digits, '.', '_' and '-', at most 63, a letter or digit at both ends",
    SOURCE_PATTERN: "hf://org/repo, s3://bucket/prefix or file://directory",
    ACCELERATOR_PATTERN: "host:type:index, such as gpu-1:cuda:0",
    KIND_PATTERN: "a type, a vendor or a product name, such as cuda, nvidia or *H100*",
    FILES_PATTERN: "a pattern of file names, such as *Q4_K_M*",
    SECRET_PATTERN: "a name of letters, digits, '.', '_' and '-'",
    VARIABLE_PATTERN: "the name of an environment variable",
    VERSION_PATTERN: "a version such as 0.32.0",
    IMAGE_PATTERN: "an image reference such as vllm/vllm-openai:v0.32.0",
    PATH_PATTERN: "a path that starts with /",
    FOLDER_PATTERN: "a path that starts with /, of letters, digits and . _ + @ -",
    REVISION_PATTERN: "a branch, tag or commit",
    PACKAGE_PATTERN: "a package of an index such as name, name==1.2 or name[extra]>=1,<2",
    CAPABILITY_PATTERN: "one capability such as SYS_NICE",
    GROUP_PATTERN: "the name or the number of a group",
    IMPORT_PATTERN: "a module and an attribute of it, such as package.module:build",
    ULIMIT_PATTERN: "a limit such as memlock, nofile or stack",
}
"""What each pattern requires, in the words of an error message."""


IN_CLEAR = "secret_in_clear"
"""Type of the error for a secret in clear text; reports hide the value found."""

SECRET_NAME = re.compile(
    r"(?i)(^|_)(TOKEN|PASSWORD|PASSWD|SECRET|API_?KEY|ACCESS_KEY|SECRET_KEY|PRIVATE_KEY)$"
)
SECRET_OPTION = re.compile(r"--(api[-_]key|hf[-_]token|token|password|secret)")
NO_SECRET = re.compile(r"(?i)|\d+|true|false|yes|no|on|off|none|/.*")
"""Harmless values of such variables: switches, numbers and paths."""

DATA_DIRECTORY = re.compile(r"\{\s*data_dir\s*\}")

RESERVED = re.compile(r"MOORAGE_.*|BASH_ENV|ENV|SHELLOPTS|IFS|LD_AUDIT")
"""Variables of moorage, or that affect a shell or loader before the engine starts."""

LOADERS = re.compile(r"LD_.*|DYLD_.*|PATH|PYTHON.*|BASHOPTS|PERL5.*|NODE_OPTIONS")
"""Variables that decide which code runs; they must not come from secrets."""

SYSTEM = re.compile(r"/(proc|sys|etc|boot|run|dev(?!/shm/)|var/run)?(/.*)?")
"""Folders of the operating system: not for models, and unsafe to mount into a container."""


def check_environment(env: Mapping[str, str]) -> None:
    """Refuse variables that hold secrets or are reserved, without showing values."""
    for name, value in env.items():
        if RESERVED.fullmatch(name):
            raise ValueError(f"{name} must not be set")
        if SECRET_NAME.search(name) and not NO_SECRET.fullmatch(value):
            raise _in_clear(name, f"secrets: {{{name}: NAME}}")
        _check_value(name, value)


def check_words(words: Iterable[str]) -> None:
    """Refuse secrets in words of a command line, without showing the word."""
    for word in words:
        _check_value("a word", word)


def check_placeholders(words: Iterable[str]) -> None:
    """Refuse GPUStack's placeholder `{data_dir}`, a directory that no engine sees here."""
    if any(DATA_DIRECTORY.search(word) for word in words):
        raise ValueError(
            "`{data_dir}` is filled in by GPUStack alone; an engine sees the directory of its model"
            " and no other. Put the file there: `{{model_path}}` is that directory in"
            " `engine.command` and `engine.entrypoint`, `/models/NAME` in the `engine.args` of a"
            " container. Adapters belong in `lora`, a draft model in `speculative.model`"
        )


def check_secret_options(words: Iterable[str]) -> None:
    """Refuse options with a secret as value: records, logs and process lists show command lines."""
    if option := secret_option(words):
        raise PydanticCustomError(
            IN_CLEAR,
            "{option} would show its secret on the command line; use `secrets`, and where the"
            " program reads no variable `sh -c 'exec PROGRAM {option} \"$NAME\"'`",
            {"option": option},
        )


def secret_option(words: Iterable[str]) -> str:
    """The first option with a secret as value, without the value; empty = none."""
    options = (word.partition("=")[0] for word in words)
    return next(filter(SECRET_OPTION.fullmatch, options), "")


def check_program(first: str) -> None:
    """Refuse a command line whose first word is empty or an option, and therefore not a program."""
    if not first or first.startswith("-"):
        raise ValueError(f"the first word is the program, and {first!r} is none")


def check_path(path: str) -> str:
    """Refuse a path with `.`, `..`, empty steps or control characters."""
    if any(step in ("", ".", "..") for step in path.strip("/").split("/")) and path != "/":
        raise ValueError("must not contain '.', '..' or '//'")
    if not path.isprintable():
        raise ValueError("must not contain control characters")
    return path


def is_of_the_system(path: str) -> bool:
    """Whether an absolute path is a folder of the operating system, or inside one."""
    return bool(SYSTEM.fullmatch(path))


def _check_folder(path: str) -> str:
    check_path(path)
    if is_of_the_system(path):
        raise ValueError(
            f"{path} is a folder of the system, which no `file_roots` of a policy can allow"
        )
    return path


def _check_source(source: str) -> str:
    scheme, _, place = source.partition("://")
    if scheme == "file":
        if not place.startswith("/"):
            raise ValueError("a directory must be absolute here: file:///path")
        _check_folder(place)
    elif ".." in place:
        raise ValueError("must not contain '..'")
    return source


def _check_secret_variable(name: str) -> str:
    if RESERVED.fullmatch(name) or LOADERS.fullmatch(name):
        raise ValueError(f"{name} is no variable for a secret")
    return name


def _check_secret_name(name: str) -> str:
    """Refuse a secret in place of its name, without showing it."""
    if looks_like_a_secret(name):
        raise PydanticCustomError(IN_CLEAR, "holds the secret itself; only its name belongs here")
    return name


def _check_value(what: str, value: str) -> None:
    if looks_like_a_secret(value) or has_password(value):
        raise _in_clear(what, "secrets")


def _in_clear(what: str, field: str) -> PydanticCustomError:
    return PydanticCustomError(
        IN_CLEAR, "{what} holds a secret in clear; use `{field}`", {"what": what, "field": field}
    )


Source = Annotated[str, Field(pattern=SOURCE_PATTERN), AfterValidator(_check_source)]
FilesPattern = Annotated[str, Field(max_length=200, pattern=FILES_PATTERN)]
Revision = Annotated[
    str,
    Field(min_length=1, pattern=REVISION_PATTERN),
    AfterValidator(lambda revision: check_path(f"/{revision}")[1:]),
]
Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
AcceleratorId = Annotated[str, StringConstraints(pattern=ACCELERATOR_PATTERN)]
Kind = Annotated[str, StringConstraints(pattern=KIND_PATTERN)]
NO_TOKEN: dict[str, JsonValue] = {
    "not": {
        "pattern": LOOKS_LIKE.pattern,
        "patternErrorMessage": "holds a secret in clear; give the name of one in `secrets`",
    }
}
"""For the JSON Schema of a text: Prefect's server refuses a token before it stores it."""

SecretName = Annotated[
    str,
    StringConstraints(pattern=SECRET_PATTERN),
    AfterValidator(_check_secret_name),
    Field(json_schema_extra=NO_TOKEN),
]
Word = Annotated[str, Field(json_schema_extra=NO_TOKEN)]
PackageName = Annotated[str, StringConstraints(pattern=PACKAGE_PATTERN)]
VariableName = Annotated[str, StringConstraints(pattern=VARIABLE_PATTERN)]
SecretVariable = Annotated[
    str, StringConstraints(pattern=VARIABLE_PATTERN), AfterValidator(_check_secret_variable)
]
UrlPath = Annotated[str, Field(pattern=PATH_PATTERN), AfterValidator(check_path)]
Folder = Annotated[str, Field(pattern=FOLDER_PATTERN), AfterValidator(_check_folder)]
FilePath = Annotated[str, Field(pattern=FOLDER_PATTERN), AfterValidator(check_path)]
Port = Annotated[int, Field(ge=1, le=65535)]
