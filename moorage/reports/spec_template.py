"""The file of a new spec: the given fields, and the most used other fields as comments."""

import json
import re
import textwrap
from typing import Any

from moorage.reports.field_reference import fields_of
from moorage.reports.file_schema import SCHEMAS
from moorage.spec import ModelSpec

SUGGESTED: dict[str, str] = {
    "revision": "main",
    "files": '"*Q4_K_M*"',
    "engine": "auto",
    "context": "auto",
    "concurrency": "auto",
    "placement": "{accelerators: auto}",
    "replicas": "1",
    "keep_alive": "never",
    "secrets": "{HF_TOKEN: TEAM_HF_TOKEN}",
}
"""Fields that a new file mentions in comments, with example values."""

HEAD = """\
# yaml-language-server: $schema={schemas}/spec.json
# `moorage plan {name}` shows what a deploy would run; `moorage explain FIELD` tells about a field.
"""
WIDTH = 100
PLAIN = re.compile(r"[A-Za-z](?:[\w./-]|:/)*")
OTHER_TYPES = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


def new_spec(content: dict[str, Any]) -> str:
    """The text of a new file.

    Args:
        content: A valid spec of plain texts.
    """
    fields = fields_of(ModelSpec)
    lines = [f"{name}: {_scalar(value)}" for name, value in content.items()]
    text = HEAD.format(schemas=SCHEMAS, name=content["name"]) + "\n".join(lines) + "\n"
    for name, value in SUGGESTED.items():
        if name not in content:
            text += f"\n{_comment(fields[name].text)}\n# {name}: {value}\n"
    return text


def _scalar(text: str) -> str:
    """A text as a YAML scalar, in quotes where YAML could read it as anything else."""
    is_plain = PLAIN.fullmatch(text) and text.lower() not in OTHER_TYPES
    return text if is_plain else json.dumps(text, ensure_ascii=not text.isprintable())


def _comment(text: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent="# ", subsequent_indent="# ")
