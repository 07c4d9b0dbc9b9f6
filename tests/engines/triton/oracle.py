"""What a real vLLM makes of the arguments in model.json files. Runs where vLLM is, alone.

Reads a JSON list of objects from standard input. Writes one object: `refused`, a list of what
`AsyncEngineArgs` says to each (null where it takes it), and `server`, the options of `vllm serve`
that are no field of it.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from typing import Any


def main() -> None:
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    os.environ["VLLM_TARGET_DEVICE"] = "cpu"
    # The variable above has to be set first.
    from vllm.engine.arg_utils import AsyncEngineArgs  # noqa: PLC0415
    from vllm.entrypoints.launchers import cli_args  # noqa: PLC0415

    fields = {field.name: field for field in dataclasses.fields(AsyncEngineArgs)}
    parser = cli_args.make_arg_parser(cli_args.FlexibleArgumentParser())
    server = sorted(
        option
        for action in parser._actions
        for option in action.option_strings
        if option.startswith("--") and not option.startswith("--no-") and action.dest not in fields
    )
    documents = json.load(sys.stdin)
    refused = [verdict(AsyncEngineArgs, one) for one in documents]
    json.dump({"refused": refused, "server": server}, answer)
    answer.flush()


def verdict(make: Any, document: dict[str, Any]) -> str | None:
    try:
        make(**{**document, "model": "/"})  # it must be there
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:300]
    return None


if __name__ == "__main__":
    main()
