"""Shell completion of model and spec names, which must neither fail nor write."""

from contextlib import suppress
from pathlib import Path


def models(incomplete: str) -> list[str]:
    """Models of the ledger whose names begin with `incomplete`."""
    with suppress(Exception):
        from sqlalchemy import make_url  # noqa: PLC0415  (only a completion needs any of these)

        from moorage.adapters.ledger import Ledger  # noqa: PLC0415
        from moorage.adapters.ledger.traces import database_file  # noqa: PLC0415
        from moorage.adapters.system.settings import Settings  # noqa: PLC0415

        url = Settings().ledger
        file = database_file(make_url(url))
        if file is None or file.exists():
            named = Ledger(url).releases.models()
            return [name for name in named if name.startswith(incomplete)]
    return []


def specs(incomplete: str) -> list[str]:
    """Spec names under deployments/, and paths of files, that begin with `incomplete`."""
    with suppress(OSError, ValueError):
        from moorage.adapters.files.specs import spec_names  # noqa: PLC0415  (reads YAML)
        from moorage.cli.options import DEPLOYMENTS  # noqa: PLC0415  (it has these completed)

        names = spec_names(DEPLOYMENTS)
        begun = Path(incomplete)
        folder = begun if incomplete.endswith("/") else begun.parent
        there = [one for one in folder.iterdir() if str(one).startswith(incomplete)]
        files = [f"{one}/" if one.is_dir() else str(one) for one in there]
        shown = [one for one in files if one.endswith(("/", ".yaml", ".yml"))]
        return sorted({name for name in names if name.startswith(incomplete)} | {*shown})
    return []
