"""Which files of a repository an engine needs: the metadata and exactly one weight family."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from moorage.failures import Cause, Failure
from moorage.models.source import ModelFile, SkippedFile

WEIGHT_FAMILIES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("safetensors", (".safetensors",)),
    ("bin", (".bin",)),
    ("pt", (".pt", ".pth")),
)
"""Families in the order in which engines prefer them; vLLM and transformers agree on it."""

DUPLICATES = ("consolidated", "original/", "onnx/", "openvino/", "gguf/", "metal/")
"""Files and folders that repeat the same weights in another layout."""

UNUSED_SUFFIXES = (".onnx", ".h5", ".msgpack", ".ot", ".gguf", ".tflite", ".mlmodel", ".png", ".jpg")

BIN_NOT_WEIGHTS = ("training_args.bin", "optimizer.bin", "scheduler.bin", "random_states")


def choose_files(
    files: Sequence[ModelFile],
) -> tuple[str, tuple[ModelFile, ...], tuple[SkippedFile, ...]]:
    """Split the files of a model into those to have and those to leave.

    Returns:
        The weight family, the chosen files and the skipped ones, each with its reason.

    Raises:
        Failure: `SOURCE_INCOMPLETE` when there is no config.json or no weight file.
    """
    reasons = {file.name: _reason_to_skip(file.name) for file in files}
    candidates = [file for file in files if not reasons[file.name]]
    family = _first_family(candidates)
    for file in candidates:
        other = _family_of(file.name)
        if other and other != family:
            reasons[file.name] = f"the same weights as {family}, which the engine loads first"
    chosen = tuple(file for file in files if not reasons[file.name])
    if not any(file.name == "config.json" for file in chosen):
        raise Failure(Cause.SOURCE_INCOMPLETE, "there is no config.json")
    skipped = tuple(
        SkippedFile(name=file.name, size=file.size, reason=reasons[file.name])
        for file in files
        if reasons[file.name]
    )
    return family, chosen, skipped


def is_weight(name: str) -> bool:
    """Whether a chosen file holds weights (else it is metadata, small and needed early)."""
    return bool(_family_of(name))


def _first_family(files: Sequence[ModelFile]) -> str:
    for family, _ in WEIGHT_FAMILIES:
        if any(_family_of(file.name) == family for file in files):
            return family
    names = ", ".join(sorted(file.name for file in files)[:8]) or "nothing"
    raise Failure(Cause.SOURCE_INCOMPLETE, f"there are no weight files; found {names}")


def _family_of(name: str) -> str:
    if PurePosixPath(name).name.startswith(BIN_NOT_WEIGHTS):
        return ""
    return next((family for family, ends in WEIGHT_FAMILIES if name.endswith(ends)), "")


def _reason_to_skip(name: str) -> str:
    if any(part.startswith(".") for part in PurePosixPath(name).parts):
        return "hidden file"
    if name.startswith(DUPLICATES):
        return "the same weights in another layout"
    if name.endswith(UNUSED_SUFFIXES):
        return "no engine here loads this format"
    if PurePosixPath(name).name.startswith(BIN_NOT_WEIGHTS):
        return "state of the training, not of the model"
    return ""
