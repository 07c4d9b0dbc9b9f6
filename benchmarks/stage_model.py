"""The steps resolve and stage of a deploy, as a separate process.

MOORAGE_HOME=... MOORAGE_HUB_ENDPOINT=... python -m benchmarks.stage_model hf://ORG/NAME
"""

from __future__ import annotations

import sys

from moorage.adapters.sources import read_keys, source_for
from moorage.adapters.system.settings import Settings
from moorage.models.assets import assets_of
from moorage.spec import ModelSpec


def main() -> None:
    """Download the model into the home."""
    spec = ModelSpec(name="model", source=sys.argv[1])
    asset = assets_of(spec)[0]
    source = source_for(asset, Settings(), read_keys(spec))
    source.stage(source.resolve(asset), lambda _done, _total: None)


if __name__ == "__main__":
    main()
