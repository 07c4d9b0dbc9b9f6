"""Write the arguments of this Python's `transformers serve` as JSON, one argument per line.

    python -m scripts.engine_schemas.transformers_serve > VERSION.json

It describes the command's own options. Neither torch nor the packages of the server are needed.
"""

import sys
from typing import Any

import click
import transformers
from transformers.cli.transformers import app

from moorage.adapters.engines.extract_vllm_schema import document

KINDS = {"integer": "integer", "float": "number"}
"""Kinds by click's type name; other types count as text, so that their values are not refused."""


def main() -> None:
    """Describe the command on standard output."""
    rows = [describe(option) for option in options_of(app, "serve")]
    sys.stdout.write(document("transformers", transformers.__version__, rows, grammar="exact"))


def options_of(group: click.Group, name: str) -> list[click.Option]:
    """The options of a group's command, including `--help` and hidden ones."""
    command = group.commands[name]
    parent = click.Context(group, **group.context_settings)
    context = click.Context(command, parent=parent, **command.context_settings)
    return [item for item in command.get_params(context) if isinstance(item, click.Option)]


def describe(option: click.Option) -> dict[str, Any]:
    """One option; the name that turns it on comes first."""
    row: dict[str, Any] = {"options": [*option.opts, *option.secondary_opts], **value_of(option)}
    if option.required:
        row["required"] = True
    if option.deprecated:
        row["deprecated"] = {}
    return row


def value_of(option: click.Option) -> dict[str, Any]:
    """Kind, number and choices of an option's values."""
    if option.is_flag:
        return {"kind": "help" if "--help" in option.opts else "switch"}
    row: dict[str, Any] = {"kind": KINDS.get(option.type.name, "text")}
    if option.nargs != 1:
        row["values"] = option.nargs
    if isinstance(option.type, click.Choice):
        row["choices"] = sorted(option.type.choices)
    return row


if __name__ == "__main__":
    main()
