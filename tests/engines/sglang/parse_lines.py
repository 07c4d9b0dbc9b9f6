"""Parse lines of arguments with SGLang's own parser, in a process of its own.

Standard input is a JSON list of lines; standard output a list of what the parser objects.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path

from scripts.engine_schemas.sglang import sglang_parser


def main() -> None:
    parser = sglang_parser(Path(sys.argv[1]))
    answers = []
    for line in json.load(sys.stdin):
        objection = io.StringIO()
        try:
            with contextlib.redirect_stderr(objection):
                parser.parse_args(line)
        except SystemExit:
            answers.append(objection.getvalue()[-300:])
        else:
            answers.append("")
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
