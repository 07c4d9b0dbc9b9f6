"""A model as a person names it: by its spec, or by its source."""

from pathlib import Path
from typing import Annotated

import typer

from moorage.adapters.files.pretrained import CONFIG
from moorage.adapters.files.specs import load_spec, validated_request
from moorage.cli.completion import specs
from moorage.cli.options import DEPLOYMENTS, ENDINGS, existing
from moorage.spec import ModelSpec
from moorage.spec.one_shot import SCHEMES, source_spec

AnyModel = Annotated[
    str,
    typer.Argument(
        help="A spec's file, NAME for deployments/NAME.yaml, - for standard input, a hub name such"
        " as org/repo or org/repo:Q4_K_M, a folder, or a GGUF file.",
        autocompletion=specs,
    ),
]


def spec_or_source(model: str) -> tuple[ModelSpec, Path]:
    """The spec that is named, or one with defaults for a source; and a file beside its fleet's."""
    source = source_named(model)
    if source:
        spec = validated_request(source_spec(source))
        return spec, DEPLOYMENTS / f"{spec.name}.yaml"
    path = existing(Path(model))
    return load_spec(path), path


def source_named(model: str) -> str:
    """The source that is named; empty = it is a spec."""
    path = Path(model.removeprefix("file://")).expanduser()
    if path.suffix in ENDINGS or _holds_specs(path):
        return ""
    if path.exists():
        return f"file://{path.resolve()}"
    return model if model.startswith(SCHEMES) or "/" in model else ""


def _holds_specs(folder: Path) -> bool:
    return any(folder.glob("*.yaml")) and not (folder / CONFIG).exists()
