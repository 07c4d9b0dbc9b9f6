"""Write the arguments of an SGLang wheel as JSON, one argument a line.

    python -m moorage.adapters.engines.extract_sglang_schema FOLDER VERSION > VERSION.json

FOLDER is where the wheel was unpacked; none of its dependencies is needed but msgspec.
"""

import sys
from pathlib import Path

from moorage.adapters.engines.extract_vllm_schema import describe, document
from moorage.adapters.engines.sglang_parser import sglang_parser


def main() -> None:
    """Describe the parser on standard output."""
    folder, version = sys.argv[1:]
    parser = sglang_parser(Path(folder))
    rows = [describe(action, set()) for action in parser._actions if action.option_strings]
    sys.stdout.write(document("sglang", version, rows))


if __name__ == "__main__":
    main()
