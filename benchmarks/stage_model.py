"""The steps resolve and stage of a deploy, as a separate process.

MOORAGE_HOME=... MOORAGE_HUB_ENDPOINT=... python -m benchmarks.stage_model hf://ORG/NAME
"""

from __future__ import annotations

import os
import sys

from moorage.adapters.system.garbage import look_for_garbage_rarely


def main() -> None:
    """Download the model into the home. It begins as the command `moorage` does."""
    look_for_garbage_rarely()
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    from moorage.adapters.sources import read_keys, source_for  # noqa: PLC0415
    from moorage.adapters.system.settings import Settings  # noqa: PLC0415
    from moorage.models.assets import assets_of  # noqa: PLC0415
    from moorage.spec import ModelSpec  # noqa: PLC0415

    spec = ModelSpec(name="model", source=sys.argv[1])
    asset = assets_of(spec)[0]
    source = source_for(asset, Settings(), read_keys(spec))
    source.stage(source.resolve(asset), lambda _done, _total: None)


if __name__ == "__main__":
    main()
