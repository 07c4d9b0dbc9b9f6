"""What vLLM itself says to arguments. Runs where vLLM is, alone.

Reads one JSON object from standard input: `lines`, command lines (lists of words, from `serve` on),
and `documents`, the contents of model.json files. Writes one object: for each of both lists what
vLLM says to its entries, null where it takes one, and `server`, the options of `vllm serve` that
`AsyncEngineArgs` has no field for.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import io
import json
import os
import sys
import warnings
from typing import Any


def main() -> None:
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    os.environ["VLLM_TARGET_DEVICE"] = "cpu"
    os.environ["VLLM_LOGGING_LEVEL"] = "CRITICAL"
    warnings.simplefilter("ignore")
    sys.argv = ["vllm"]
    # The variables above have to be set first.
    from vllm.engine.arg_utils import AsyncEngineArgs  # noqa: PLC0415
    from vllm.entrypoints.launchers import cli_args  # noqa: PLC0415

    parser = cli_args.FlexibleArgumentParser()
    parser.add_argument("-v", "--version", action="version", version="")
    serve = parser.add_subparsers(dest="subparser").add_parser("serve")
    cli_args.make_arg_parser(serve)
    asked = json.load(sys.stdin)
    found = {
        "lines": [refusal_of_line(parser, line) for line in asked["lines"]],
        "documents": [refusal_of_document(AsyncEngineArgs, one) for one in asked["documents"]],
        "server": server_options(serve, AsyncEngineArgs),
    }
    json.dump(found, answer)
    answer.flush()


def refusal_of_line(parser: argparse.ArgumentParser, words: list[str]) -> str | None:
    output = io.StringIO()
    try:
        with contextlib.redirect_stderr(output), contextlib.redirect_stdout(output):
            parser.parse_args(words)
    except SystemExit:
        return output.getvalue()[-300:] or "it ended"
    except Exception as error:
        return repr(error)[:300]
    return None


def refusal_of_document(make: Any, document: dict[str, Any]) -> str | None:
    try:
        make(**{**document, "model": "/"})  # it must be there
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:300]
    return None


def server_options(serve: argparse.ArgumentParser, engine: Any) -> list[str]:
    fields = {field.name for field in dataclasses.fields(engine)}
    return sorted(
        option
        for action in serve._actions
        for option in action.option_strings
        if option.startswith("--") and not option.startswith("--no-") and action.dest not in fields
    )


if __name__ == "__main__":
    main()
