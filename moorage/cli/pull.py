"""`moorage pull`: download a model to the store of this machine, ahead of a deploy."""

from typing import Any

from rich import progress

from moorage.adapters.sources import read_keys, resolve_one, source_for
from moorage.adapters.system.settings import Settings
from moorage.cli.any_model import AnyModel
from moorage.cli.options import AsJson
from moorage.cli.output import dump, err, print_table
from moorage.cli.run import FilesPattern, spec_of
from moorage.common.units import human_bytes
from moorage.models.assets import Asset, assets_of
from moorage.models.source import ResolvedModel
from moorage.spec import ModelSpec

HEADER = ("model", "revision", "size", "format", "path")


def pull(model: AnyModel, files: FilesPattern = "", as_json: AsJson = False) -> None:
    """Download a model, its adapters and its draft model; what is there and complete stays."""
    spec = spec_of(model, files=files)
    found = [_pulled(spec, asset, quiet=as_json) for asset in assets_of(spec)]
    rows = [_row(one) for one in found]
    if as_json:
        return dump(rows)
    shown = [{**row, "size": human_bytes(row["size"])} for row in rows]
    return print_table(HEADER, [tuple(row.values()) for row in shown])


def _pulled(spec: ModelSpec, asset: Asset, *, quiet: bool) -> ResolvedModel:
    """Download and verify one asset, resuming interrupted downloads."""
    settings, keys = Settings(), read_keys(spec)
    found = resolve_one(asset, settings, keys)
    bar = progress.Progress(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(bar_width=30),
        progress.DownloadColumn(),
        progress.TransferSpeedColumn(),
        console=err,
        transient=True,
        disable=quiet or not err.is_terminal,
    )
    with bar:
        task = bar.add_task(asset.source, total=found.bytes_to_stage)

        def on_progress(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        source = source_for(asset, settings, keys)
        deadline = spec.readiness.deadlines.download_seconds
        return source.stage(found, on_progress, deadline_seconds=deadline)


def _row(model: ResolvedModel) -> dict[str, Any]:
    return {
        "model": model.source,
        "revision": model.revision,
        "size": model.bytes_to_stage,
        "format": model.weights.family,
        "path": model.path,
    }
