"""A model as users name it: by its spec or by its source."""

from os.path import isdir, isfile
from pathlib import Path
from typing import Annotated

import typer

from moorage.adapters.files.pretrained import CONFIG
from moorage.adapters.files.safe_files import expanded
from moorage.adapters.files.specs import load_spec, validated_spec
from moorage.cli.completion import specs
from moorage.cli.options import DEPLOYMENTS, ENDINGS, existing
from moorage.models.files import GGUF, WEIGHT_FAMILIES
from moorage.spec import ModelSpec
from moorage.spec.one_shot import LOCAL, SCHEMES, source_spec

AnyModel = Annotated[
    str,
    typer.Argument(
        help="A spec's file, NAME for deployments/NAME.yaml, - for standard input, a hub name such"
        " as org/repo or org/repo:Q4_K_M, a folder, or a GGUF file.",
        autocompletion=specs,
    ),
]


def spec_or_source(model: str) -> tuple[ModelSpec, Path]:
    """The named spec, or a spec with defaults for a source.

    Returns:
        The spec, and its actual or would-be file, next to which a fleet file is looked up.
    """
    if source := source_named(model):
        spec = validated_spec(source_spec(source))
        return spec, DEPLOYMENTS / f"{spec.name}.yaml"
    path = existing(Path(model))
    return load_spec(path), path


def source_named(model: str) -> str:
    """The named source; empty = the name is a spec's."""
    if model.startswith(SCHEMES) and not model.startswith(LOCAL):
        return model
    path = expanded(model.removeprefix(LOCAL))
    is_model = isdir(path) and not _holds_specs(path)
    is_gguf = path.suffix in WEIGHT_FAMILIES[GGUF] and isfile(path)
    if is_model or is_gguf or model.startswith(LOCAL):
        return f"{LOCAL}{path.resolve()}"
    on_hub = "/" in model and path.suffix not in ENDINGS and not isdir(path.parent)
    return model if on_hub else ""


def _holds_specs(folder: Path) -> bool:
    return any(folder.glob("*.yaml")) and not (folder / CONFIG).exists()
