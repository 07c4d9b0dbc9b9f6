"""What redeploying many models in one flow run costs of our own processor time, for each model.

The engines are the tiny server of the tests, so nearly everything is ours. See
`benchmarks.many.Many.measure` for what is counted. What a command costs without any model, mostly
imports, is measured too: it is part of each figure.

    python -m benchmarks.redeploying [--models 100] [--wave 25]
"""

from __future__ import annotations

import argparse
import json
import tempfile
from contextlib import closing
from pathlib import Path

from benchmarks.many import Many, Servers


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--models", type=int, default=100)
    parser.add_argument("--wave", default="25")
    parser.add_argument("--at-once", type=int, default=4)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        with (
            closing(Servers(folder)) as servers,
            closing(Many(folder, chosen.models, servers)) as m,
        ):
            waves = ("--wave", chosen.wave, "--at-once", chosen.at_once, "--fleet", m.fleet)
            for what, *arguments in (
                ("apply, all new", "apply", m.specs, "--yes", "--at-once", chosen.at_once),
                ("redeploy, no model at all", "redeploy", "none-*", *waves),
                ("redeploy, nothing moved", "redeploy", "--all", "--yes", *waves),
                ("redeploy --force, all", "redeploy", "--all", "--yes", "--force", *waves),
            ):
                print(json.dumps(m.measure(what, *arguments)), flush=True)


if __name__ == "__main__":
    main()
