from __future__ import annotations

from collections.abc import Iterable

import pytest

from moorage.common.failures import Cause, Failure
from moorage.common.units import MIB
from moorage.models.files import (
    choose_adapter_files,
    choose_files,
    is_metadata,
    is_weight,
    model_file,
    projector_file,
)
from moorage.models.source import ModelFile
from moorage.spec.patterns import MISTRAL_FILES


def listing(names: str) -> list[ModelFile]:
    return [ModelFile(name=name, size=1) for name in names.split()]


def names_of(files: Iterable[ModelFile]) -> str:
    return " ".join(file.name for file in files)


MISTRAL = "config.json tekken.json consolidated.safetensors model.safetensors"
SHARDS = (
    "config.json consolidated-1.safetensors consolidated.safetensors.index.json model-1.safetensors"
    " model.safetensors.index.json consolidated.00.pth"
)


@pytest.mark.parametrize(
    ("there", "chosen"),
    [
        (MISTRAL, "config.json tekken.json consolidated.safetensors"),
        (SHARDS, "config.json consolidated-1.safetensors consolidated.safetensors.index.json"),
    ],
)
def test_mistrals_own_layout_is_chosen_where_it_is_asked_for(there: str, chosen: str) -> None:
    family, found, _ = choose_files(listing(there), MISTRAL_FILES)
    assert (family, names_of(found)) == ("safetensors", chosen)
    assert names_of(choose_files(listing(MISTRAL))[1]).endswith("json model.safetensors")


def test_small_layers_beside_the_weights_are_no_second_family() -> None:
    """BGE-M3 has two, which vLLM loads in addition to its weights."""
    heads = "colbert_linear.pt sparse_linear.pt"
    there = f"config.json {heads} pytorch_model.bin"
    assert names_of(choose_files(listing(there))[1]) == there
    assert not any(map(is_weight, heads.split()))


@pytest.mark.parametrize(
    ("name", "size", "early"),
    [
        ("tokenizer.json", 33 * MIB, True),
        ("large.dat", 65 * MIB, False),
        ("model.safetensors", 1, False),
    ],
)
def test_what_is_read_before_the_weights_is_small(name: str, size: int, early: bool) -> None:
    assert is_metadata(ModelFile(name=name, size=size)) is early


@pytest.mark.parametrize(
    ("there", "pattern", "advice"),
    [
        ("config.json params.json consolidated.safetensors", "", "Add `--load-format mistral`"),
        ("config.json model.safetensors", MISTRAL_FILES, "leave `--load-format mistral` out"),
    ],
)
def test_weights_in_the_other_layout_only_are_named(there: str, pattern: str, advice: str) -> None:
    with pytest.raises(Failure) as caught:
        choose_files(listing(there), pattern)
    assert caught.value.cause == Cause.SOURCE_INCOMPLETE
    assert advice in str(caught.value.suggestion)


@pytest.mark.parametrize(
    ("there", "family", "chosen"),
    [
        ("model.safetensors pytorch_model.bin", "safetensors", "model.safetensors"),
        ("pytorch_model.bin training_args.bin", "bin", "pytorch_model.bin"),
        ("model.pt optimizer.bin", "pt", "model.pt"),
        ("model.safetensors tf_model.h5 model.onnx logo.png", "safetensors", "model.safetensors"),
        ("model.safetensors consolidated.safetensors", "safetensors", "model.safetensors"),
        ("model.safetensors original/a.pth onnx/m.bin", "safetensors", "model.safetensors"),
        ("model.safetensors .cache/x.safetensors", "safetensors", "model.safetensors"),
        ("model.safetensors x.nemo y.ckpt z/__0_0.distcp", "safetensors", "model.safetensors"),
        ("model.safetensors data.parquet runs.tar.gz", "safetensors", "model.safetensors"),
        ("model.safetensors checkpoint-5/model.safetensors", "safetensors", "model.safetensors"),
        (
            "model.safetensors 2_Dense/pytorch_model.bin",
            "safetensors",
            "model.safetensors 2_Dense/pytorch_model.bin",
        ),
        (
            "model.safetensors 2_Dense/model.safetensors 2_Dense/pytorch_model.bin",
            "safetensors",
            "model.safetensors 2_Dense/model.safetensors",
        ),
        ("weights/a.safetensors weights/a.bin", "safetensors", "weights/a.safetensors"),
        ("a.safetensors gguf/a.gguf gguf/mmproj-F16.gguf", "safetensors", "a.safetensors"),
        ("weights/a.safetensors gguf/a.gguf", "safetensors", "weights/a.safetensors"),
    ],
)
def test_one_family_is_chosen_and_no_copy_of_it(there: str, family: str, chosen: str) -> None:
    found, files, skipped = choose_files(listing(f"config.json {there}"))
    assert (found, names_of(files)) == (family, f"config.json {chosen}")
    left = set(there.split()) - set(chosen.split())
    assert {file.name for file in skipped} == left
    assert all(file.reason for file in skipped)


def test_metadata_and_code_come_along() -> None:
    there = "config.json modeling_x.py chat_template.jinja 1_Pooling/config.json m.safetensors"
    _, files, _ = choose_files(listing(there))
    assert names_of(files) == there
    assert [file.name for file in files if is_weight(file.name)] == ["m.safetensors"]


@pytest.mark.parametrize(
    ("there", "pattern", "chosen", "model", "projector"),
    [
        ("m.gguf", "", "m.gguf", "m.gguf", ""),
        ("m-2.gguf mmproj-F16.gguf", "", "m-2.gguf mmproj-F16.gguf", "m-2.gguf", "mmproj-F16.gguf"),
        (
            "m.gguf mmproj-BF16.gguf mmproj-F32.gguf mmproj-model-f16.gguf",
            "",
            "m.gguf mmproj-model-f16.gguf",
            "m.gguf",
            "mmproj-model-f16.gguf",
        ),
        (
            "Q4/m-Q4_0.gguf mmproj-F32.gguf mmproj-Q8_0.gguf",
            "*Q4_0*",
            "Q4/m-Q4_0.gguf mmproj-Q8_0.gguf",
            "Q4/m-Q4_0.gguf",
            "mmproj-Q8_0.gguf",
        ),
        ("README.md gguf/m.gguf", "", "README.md gguf/m.gguf", "gguf/m.gguf", ""),
        (
            "config.json a.safetensors gguf/m-Q4_0.gguf gguf/m-Q8_0.gguf",
            "gguf/*Q4_0*",
            "config.json gguf/m-Q4_0.gguf",
            "gguf/m-Q4_0.gguf",
            "",
        ),
        ("m-Q4_0.gguf m-Q8_0.gguf README.md", "*Q8_0*", "m-Q8_0.gguf README.md", "m-Q8_0.gguf", ""),
        ("config.json a.safetensors a.gguf", "*.gguf", "config.json a.gguf", "a.gguf", ""),
        (
            "Q8/m-00001-of-00002.gguf Q8/m-00002-of-00002.gguf Q4/m-00001-of-00001.gguf",
            "Q8/*",
            "Q8/m-00001-of-00002.gguf Q8/m-00002-of-00002.gguf",
            "Q8/m-00001-of-00002.gguf",
            "",
        ),
    ],
)
def test_one_gguf_model_is_chosen_with_all_of_its_parts_and_its_projector(
    there: str, pattern: str, chosen: str, model: str, projector: str
) -> None:
    family, files, _ = choose_files(listing(there), pattern)
    assert (family, names_of(files)) == ("gguf", chosen)
    assert (model_file(files), projector_file(files)) == (model, projector)


def test_a_pattern_that_no_file_matches_tells_what_is_there() -> None:
    with pytest.raises(Failure, match=r"named like \*Q2\*; found m-Q4_0.gguf, m-Q8_0.gguf"):
        choose_files(listing("m-Q4_0.gguf m-Q8_0.gguf"), "*Q2*")


@pytest.mark.parametrize(
    ("there", "why"),
    [
        ("model.safetensors", "there is no config.json"),
        ("sub/config.json model.safetensors", "there is no config.json"),
        (
            "model_index.json vae/config.json vae/a.safetensors",
            "there is no config.json, but model_index.json: it is a pipeline of diffusers",
        ),
        ("config.json README.md", "no weight files; found README.md, config.json"),
        ("config.json m-Q4_0.gguf m-Q8_0.gguf", "which of several GGUF models is meant: m-Q4_0"),
        ("", "no weight files; found nothing"),
    ],
)
def test_a_model_without_config_or_weights_is_incomplete(there: str, why: str) -> None:
    with pytest.raises(Failure, match=why) as caught:
        choose_files(listing(there))
    assert caught.value.cause is Cause.SOURCE_INCOMPLETE


SAVED = ("README.md", "adapter_config.json", "adapter_model.safetensors", "tokenizer.json")


def test_of_an_adapter_its_configuration_and_its_weights_are_taken() -> None:
    family, chosen, skipped = choose_adapter_files(listing(" ".join(SAVED)))
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
        (("a-F16.gguf", "a-F32.gguf"), "which of several GGUF adapters is meant: a-F16.gguf, a-F3"),
    ],
)
def test_what_is_no_whole_adapter_is_refused_with_what_is_there(
    names: tuple[str, ...], detail: str
) -> None:
    with pytest.raises(Failure, match=detail) as caught:
        choose_adapter_files(listing(" ".join(names)))
    assert caught.value.cause is Cause.SOURCE_INCOMPLETE


@pytest.mark.parametrize(
    ("names", "pattern", "taken"),
    [
        (("README.md", "a-F16.gguf"), "", "a-F16.gguf"),
        (("adapter_config.json", "a-F16.gguf"), "", "a-F16.gguf"),
        (("a-F16.gguf", "b-F32.gguf"), "*F32*", "b-F32.gguf"),
        ((*SAVED, "a-F16.gguf"), "*F16*", "a-F16.gguf"),
    ],
)
def test_of_an_adapter_for_llama_cpp_one_gguf_file_is_taken(
    names: tuple[str, ...], pattern: str, taken: str
) -> None:
    family, chosen, skipped = choose_adapter_files(listing(" ".join(names)), pattern)
    assert (family, names_of(chosen)) == ("gguf", taken)
    assert len(skipped) == len(names) - 1


def test_an_adapter_as_peft_saves_it_is_preferred() -> None:
    family, _, skipped = choose_adapter_files(listing(" ".join((*SAVED, "a-F16.gguf"))))
    assert family == "safetensors"
    assert "a-F16.gguf" in {file.name for file in skipped}


def test_a_pattern_that_names_no_gguf_adapter_is_refused() -> None:
    with pytest.raises(Failure, match=r"no GGUF file is named like \*Q8\*; found a-F16.gguf"):
        choose_adapter_files(listing("a-F16.gguf"), "*Q8*")
