"""Builds the content of a spec from a model's source and a few choices."""

import re
from typing import Any

from moorage.spec.patterns import AUTO_FILES

HUB, LOCAL = "hf://", "file://"
SCHEMES = (HUB, "s3://", LOCAL)
REPOSITORY = re.compile(r"(?:hf://)?(?P<repo>[\w.-]+/[\w.-]+)(?::(?P<files>[\w.*-]+))?")
"""`org/repo`, optionally with a quantization: `org/repo:Q4_K_M`."""

NUMBER_PATTERN = r"^(auto|[0-9]{1,9})$"
"""`auto` or a number, in one text field of a form."""

NAME = re.compile(r"[^a-z0-9]+")
ONE_SHOT = re.compile(r"run-([a-z0-9-]+-)?[0-9a-f]{6}")

AUTOMATIC = {"files": AUTO_FILES}

LONGEST = 40
"""Most characters of the source's name in the model's name."""


def one_shot_spec(source: str, token: str, **fields: Any) -> dict[str, Any]:
    """The content of the spec for a model that is served once.

    Of several quantizations the deploy takes the best that fits, unless the source names one.
    The token makes the model's name unique. Further fields without a value are left out.
    """
    content = source_spec(source, **fields)
    return content | {"name": one_shot_name(content["source"], token)}


def source_spec(source: str, **fields: Any) -> dict[str, Any]:
    """As `one_shot_spec`, but with a name that is derived from the source alone."""
    given = {key: value for key, value in fields.items() if value}
    content = {**AUTOMATIC, **source_of(source), **given}
    return {"name": _plain(content["source"]) or "model", **content}


def quick_spec(
    name: str, source: str, engine: str, accelerators: str, context: str, keep_alive: str
) -> dict[str, Any]:
    """The content of a permanent model's spec, from the fields of a short form.

    `accelerators` and `context` (in tokens) are a number or `auto`.
    """
    return {
        "name": name,
        **AUTOMATIC,
        **source_of(source),
        "engine": {"name": engine},
        "placement": {"accelerators": _number(accelerators)},
        "context": _number(context),
        "keep_alive": keep_alive,
    }


def source_of(text: str) -> dict[str, str]:
    """The spec's fields for a source: `org/repo`, `org/repo:QUANTIZATION`, or any other source."""
    match = REPOSITORY.fullmatch(text)
    if not match:
        return {"source": text}
    source, files = {"source": f"{HUB}{match['repo']}"}, match["files"]
    return source | {"files": files if "*" in files else f"*{files}*"} if files else source


def one_shot_name(source: str, token: str) -> str:
    """A unique model name, such as `run-qwen3-8b-gguf-1a2b3c`."""
    return "-".join(filter(None, ("run", _plain(source), token)))


def is_one_shot(name: str) -> bool:
    """Whether a model's name is from `moorage run`."""
    return bool(ONE_SHOT.fullmatch(name))


def _plain(source: str) -> str:
    """The last part of a source, in the characters of a model's name."""
    plain = NAME.sub("-", source.rstrip("/").rpartition("/")[2].lower()).strip("-")
    return plain[:LONGEST].strip("-")


def _number(text: str) -> int | str:
    return int(text) if text.isdecimal() else text
