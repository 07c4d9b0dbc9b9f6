"""What the directory of a model consists of, and that of a LoRA adapter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from moorage.common.failures import Cause, Failure
from moorage.models.assets import AssetRole
from moorage.models.files import choose_files
from moorage.models.source import ModelFile, SkippedFile

Choice = tuple[str, tuple[ModelFile, ...], tuple[SkippedFile, ...]]
"""The weight family, the chosen files and the skipped ones."""

ADAPTER_WEIGHTS = "adapter_model.safetensors"
ADAPTER_CONFIG = "adapter_config.json"
NAMES_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Layout:
    """The files of one kind of directory.

    Attributes:
        config: Name of the file that says what it is.
        choose: Splits its files into those to have and those to leave.
    """

    config: str
    choose: Callable[[Sequence[ModelFile]], Choice]


def choose_adapter_files(files: Sequence[ModelFile]) -> Choice:
    """Split the files of a LoRA adapter: engines read its configuration and its weights.

    Raises:
        Failure: `SOURCE_INCOMPLETE` when one of the two is not there.
    """
    needed = (ADAPTER_CONFIG, ADAPTER_WEIGHTS)
    present = {file.name for file in files}
    for name in needed:
        if name not in present:
            found = ", ".join(sorted(present)[:NAMES_SHOWN]) or "nothing"
            raise Failure(
                Cause.SOURCE_INCOMPLETE,
                f"there is no {name}; found {found}",
                suggestion="A LoRA adapter is a folder with both, as PEFT saves it.",
            )
    chosen = tuple(file for file in files if file.name in needed)
    skipped = tuple(
        SkippedFile(name=file.name, size=file.size, reason="no part of the adapter")
        for file in files
        if file.name not in needed
    )
    return "safetensors", chosen, skipped


MODEL = Layout("config.json", choose_files)
ADAPTER = Layout(ADAPTER_CONFIG, choose_adapter_files)


def layout_of(role: AssetRole) -> Layout:
    """The layout of what has a role."""
    return ADAPTER if role == AssetRole.ADAPTER else MODEL
