"""A model where it will be served: on this machine, or in the store of another."""

from __future__ import annotations

from moorage.inventory.model_store import model_directory
from moorage.models.assets import AssetRole
from moorage.models.source import Companion, ModelFile, ResolvedModel


def on_host(model: ResolvedModel, store: str) -> ResolvedModel:
    """A model, and what is loaded beside it, as a host will have it.

    Args:
        model: As it was found from here.
        store: Directory of all models on the host; empty = it is this machine.
    """
    if not store:
        return model
    beside = tuple(_companion(companion, store) for companion in model.companions)
    return _moved(model, store).model_copy(update={"companions": beside, "updates_folder": ""})


def folder_of(role: AssetRole, store: str) -> str:
    """The part of a store for what has a role: a repository may hold an adapter and a model."""
    return f"{store.rstrip('/')}/{'adapters' if role == AssetRole.ADAPTER else 'models'}"


def _companion(companion: Companion, store: str) -> Companion:
    moved = _moved(companion.model, store, companion.role)
    return companion.model_copy(update={"model": moved})


def _moved(model: ResolvedModel, store: str, role: AssetRole = AssetRole.MODEL) -> ResolvedModel:
    path = model_directory(folder_of(role, store), model.source, model.revision)
    return model.model_copy(update={"path": path, "files": tuple(map(_real, model.files))})


def _real(file: ModelFile) -> ModelFile:
    """What is a link here is a file there."""
    return file.model_copy(update={"target": ""})
