"""What this Python's `transformers serve` says to words, and its schema, in a process of its own.

Standard input is a JSON list of lines, from the words behind the model on. Standard output is the
schema, and what the command objects to in each line; empty = nothing.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys

import click
from transformers.cli.transformers import app

from scripts.engine_schemas import transformers_serve


def main() -> None:
    schema = io.StringIO()
    with contextlib.redirect_stdout(schema):
        transformers_serve.main()
    lines = json.load(sys.stdin)
    json.dump({"schema": schema.getvalue(), "refusals": list(map(refusal, lines))}, sys.stdout)


def refusal(words: list[str]) -> str:
    try:
        app.commands["serve"].make_context("serve", ["model", *words])
    except click.ClickException as error:
        return error.format_message()
    return ""


if __name__ == "__main__":
    main()
