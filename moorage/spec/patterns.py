"""The words that a spec is written in: what each may look like."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

NAME_PATTERN = r"^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$"
SOURCE_PATTERN = (
    r"^(hf://[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*|file://[^\x00]+"
    r"|s3://[a-z0-9][a-z0-9.-]+[a-z0-9](/[\w][\w./=+@-]*)?)$"
)
ACCELERATOR_PATTERN = r"^[^:\s]+:[a-z]+:\d+$"
KIND_PATTERN = r"^[\w* .()/-]+$"
SECRET_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
VARIABLE_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]*$"

VERSION_PATTERN = r"^\d[\w.+-]*$"
IMAGE_PATTERN = r"^[^\s-][^\s]*$"
PATH_PATTERN = r"^/[^\s]*$"
REVISION_PATTERN = r"^[\w][\w./-]*$"
PACKAGE_PATTERN = (
    r"^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
    r"(?:\[[A-Za-z0-9._-]+(?:, ?[A-Za-z0-9._-]+)*\])?"
    r"(?: ?(?:===?|~=|!=|<=?|>=?) ?[A-Za-z0-9.*+!_-]+"
    r"(?:, ?(?:===?|~=|!=|<=?|>=?) ?[A-Za-z0-9.*+!_-]+)*)?$"
)
"""Name, extras and versions of PEP 508; neither addresses nor markers, and nothing that could be
an option of an installer."""
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
    SECRET_PATTERN: "a name of letters, digits, '.', '_' and '-'",
    VARIABLE_PATTERN: "the name of an environment variable",
    VERSION_PATTERN: "a version such as 0.32.0",
    IMAGE_PATTERN: "an image reference such as vllm/vllm-openai:v0.32.0",
    PATH_PATTERN: "a path that starts with /",
    REVISION_PATTERN: "a branch, tag or commit",
    PACKAGE_PATTERN: "a package of an index such as name, name==1.2 or name[extra]>=1,<2",
    CAPABILITY_PATTERN: "one capability such as SYS_NICE",
    GROUP_PATTERN: "the name or the number of a group",
    IMPORT_PATTERN: "a module and an attribute of it, such as package.module:build",
    ULIMIT_PATTERN: "a limit such as memlock, nofile or stack",
}
"""What each pattern asks for, in the words of an error message."""


def _is_absolute(source: str) -> str:
    if source.startswith("file://") and not source.startswith("file:///"):
        raise ValueError("a directory must be absolute here: file:///path")
    return source


def _stays_in_the_repository(revision: str) -> str:
    if ".." in revision.split("/"):
        raise ValueError("must not contain '..'")
    return revision


Source = Annotated[str, Field(pattern=SOURCE_PATTERN), AfterValidator(_is_absolute)]
Revision = Annotated[
    str, Field(min_length=1, pattern=REVISION_PATTERN), AfterValidator(_stays_in_the_repository)
]
Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
AcceleratorId = Annotated[str, StringConstraints(pattern=ACCELERATOR_PATTERN)]
Kind = Annotated[str, StringConstraints(pattern=KIND_PATTERN)]
SecretName = Annotated[str, StringConstraints(pattern=SECRET_PATTERN)]
PackageName = Annotated[str, StringConstraints(pattern=PACKAGE_PATTERN)]
VariableName = Annotated[str, StringConstraints(pattern=VARIABLE_PATTERN)]
Port = Annotated[int, Field(ge=1, le=65535)]
