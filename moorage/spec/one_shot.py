"""The content of a spec, from the name of a model and a few choices."""

import re
from typing import Any

from moorage.spec.patterns import AUTO_FILES

HUB, LOCAL = "hf://", "file://"
SCHEMES = (HUB, "s3://", LOCAL)
REPOSITORY = re.compile(r"(?:hf://)?(?P<repo>[\w.-]+/[\w.-]+)(?::(?P<files>[\w.*-]+))?")
"""`org/repo`, and which of its quantizations: `org/repo:Q4_K_M`."""

NUMBER_PATTERN = r"^(auto|[0-9]{1,9})$"
"""`auto`, or a number: one plain field of a form."""

NAME = re.compile(r"[^a-z0-9]+")
ONE_SHOT = re.compile(r"run-([a-z0-9-]+-)?[0-9a-f]{6}")

AUTOMATIC = {"files": AUTO_FILES}

LONGEST = 40
"""Characters of the source's name in the model's name."""


def one_shot_spec(source: str, token: str, **fields: Any) -> dict[str, Any]:
    """The content of the spec for a model that is served once.

    Of several quantizations it takes the best that fits, unless one is named.

    Args:
        source: `org/repo`, `org/repo:QUANTIZATION`, or a source as in a spec.
        token: Makes the model's name differ from all others.
        fields: Of the spec; those without a value are left out.
    """
    content = source_spec(source, **fields)
    return content | {"name": one_shot_name(content["source"], token)}


def source_spec(source: str, **fields: Any) -> dict[str, Any]:
    """The content of the spec for a source, which gives the model its name.

    Args:
        source: As in `one_shot_spec`.
        fields: Of the spec; those without a value are left out.
    """
    given = {key: value for key, value in fields.items() if value}
    content = {**AUTOMATIC, **source_of(source), **given}
    return {"name": _plain(content["source"]) or "model", **content}


def quick_spec(
    name: str, source: str, engine: str, accelerators: str, context: str, keep_alive: str
) -> dict[str, Any]:
    """The content of the spec of a model that goes on serving, from what a short form asks for.

    Args:
        name: Of the model.
        source: As in `source_of`.
        engine: Name of the engine.
        accelerators: `auto`, or how many.
        context: `auto`, or tokens.
        keep_alive: As in a spec.
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
    """The fields of a spec that name a source: `org/repo`, `org/repo:QUANTIZATION`, or any."""
    match = REPOSITORY.fullmatch(text)
    if not match:
        return {"source": text}
    files = {"files": _pattern(match["files"])} if match["files"] else {}
    return {"source": f"{HUB}{match['repo']}", **files}


def one_shot_name(source: str, token: str) -> str:
    """A name that nothing else has: `run-qwen3-8b-gguf-1a2b3c`."""
    return "-".join(filter(None, ("run", _plain(source), token)))


def is_one_shot(name: str) -> bool:
    """Whether a model was run by `moorage run`."""
    return bool(ONE_SHOT.fullmatch(name))


def _plain(source: str) -> str:
    """What a source is called, in the letters of a model's name."""
    plain = NAME.sub("-", source.rstrip("/").rpartition("/")[2].lower()).strip("-")
    return plain[:LONGEST].strip("-")


def _number(text: str) -> int | str:
    return int(text) if text.isdecimal() else text


def _pattern(text: str) -> str:
    return text if "*" in text else f"*{text}*"
