"""What the parser of `vllm serve` itself says to command lines. Runs where vLLM is, alone.

Reads a JSON list of command lines (lists of words, from `serve` on) from standard input, and
writes a list of the same length: null where the parser takes a line, else what it says.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import sys
import warnings


def main() -> None:
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    os.environ["VLLM_TARGET_DEVICE"] = "cpu"
    os.environ["VLLM_LOGGING_LEVEL"] = "CRITICAL"
    warnings.simplefilter("ignore")
    sys.argv = ["vllm"]
    # The variables above have to be set first.
    from vllm.entrypoints.launchers import cli_args  # noqa: PLC0415

    parser = cli_args.FlexibleArgumentParser()
    parser.add_argument("-v", "--version", action="version", version="")
    serve = parser.add_subparsers(dest="subparser").add_parser("serve")
    cli_args.make_arg_parser(serve)
    json.dump([verdict(parser, line) for line in json.load(sys.stdin)], answer)
    answer.flush()


def verdict(parser: argparse.ArgumentParser, words: list[str]) -> str | None:
    output = io.StringIO()
    try:
        with contextlib.redirect_stderr(output), contextlib.redirect_stdout(output):
            parser.parse_args(words)
    except SystemExit:
        return output.getvalue()[-300:] or "it ended"
    except Exception as error:
        return repr(error)[:300]
    return None


if __name__ == "__main__":
    main()
