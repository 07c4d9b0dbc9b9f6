from __future__ import annotations

import pytest

from moorage.common.failures import Cause, Failure
from moorage.models.assets import AssetRole
from moorage.models.layout import ADAPTER, MODEL, choose_adapter_files, layout_of
from moorage.models.source import ModelFile

SAVED = ("README.md", "adapter_config.json", "adapter_model.safetensors", "tokenizer.json")


def files(*names: str) -> tuple[ModelFile, ...]:
    return tuple(ModelFile(name=name, size=1) for name in names)


def test_of_an_adapter_its_configuration_and_its_weights_are_taken() -> None:
    family, chosen, skipped = choose_adapter_files(files(*SAVED))
    assert family == "safetensors"
    assert {file.name for file in chosen} == {SAVED[1], SAVED[2]}
    assert {file.name: file.reason for file in skipped}.keys() == {SAVED[0], SAVED[3]}
    assert all(file.reason for file in skipped)


@pytest.mark.parametrize(
    ("names", "detail"),
    [
        (("adapter_config.json", "adapter_model.bin"), "no adapter_model.safetensors; found adap"),
        (("config.json", "model.safetensors"), "no adapter_config.json; found config.json"),
        (("checkpoint-1/adapter_config.json",), "there is no adapter_config.json"),
        ((), "found nothing"),
    ],
)
def test_what_is_no_whole_adapter_is_refused_with_what_is_there(
    names: tuple[str, ...], detail: str
) -> None:
    with pytest.raises(Failure, match=detail) as caught:
        choose_adapter_files(files(*names))
    assert caught.value.cause is Cause.SOURCE_INCOMPLETE


@pytest.mark.parametrize("role", AssetRole)
def test_only_adapters_are_laid_out_otherwise(role: AssetRole) -> None:
    assert layout_of(role) is (ADAPTER if role == AssetRole.ADAPTER else MODEL)
