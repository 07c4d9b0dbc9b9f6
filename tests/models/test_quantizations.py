from __future__ import annotations

import pytest

from moorage.common.failures import Cause, Failure
from moorage.models.files import choose_files, is_weight
from moorage.models.quantizations import (
    FilesChoice,
    Quantization,
    quantizations,
    with_files,
)
from moorage.models.source import ModelFile
from tests.builders import a_spec


def listing(files: dict[str, int]) -> list[ModelFile]:
    return [ModelFile(name=name, size=size) for name, size in files.items()]


REPOSITORY = {
    "README.md": 1,
    "config.json": 1,
    "mmproj-F16.gguf": 30,
    "imatrix_tiny.gguf": 2,
    "Tiny-8B-Q4_K_M.gguf": 40,
    "Tiny-8B-Q4_0_4_4.gguf": 41,
    "Tiny-8B-UD-IQ2_XXS.gguf": 20,
    "Tiny-8B-f16-q6_k.gguf": 60,
    "Tiny-8B-Q5_K_S.gguf": 50,
    "Q8_0/Tiny-8B-Q8_0-00001-of-00002.gguf": 50,
    "Q8_0/Tiny-8B-Q8_0-00002-of-00002.gguf": 30,
    "BF16/Tiny-8B-BF16-00001-of-00001.gguf": 160,
    "Tiny-8B.F32.gguf": 320,
}
ORDER = [
    ("Q8_0/Tiny-8B-Q8_0.gguf", 80, 0),
    ("Tiny-8B-f16-q6_k.gguf", 60, 0),
    ("Tiny-8B-Q5_K_S.gguf", 50, 0),
    ("Tiny-8B-Q4_0_4_4.gguf", 41, 0),
    ("Tiny-8B-Q4_K_M.gguf", 40, 0),
    ("Tiny-8B-UD-IQ2_XXS.gguf", 20, 0),
    ("BF16/Tiny-8B-BF16.gguf", 160, 16),
    ("Tiny-8B.F32.gguf", 320, 32),
]


def test_the_largest_is_first_and_what_is_not_quantized_last() -> None:
    found = quantizations(listing(REPOSITORY))
    assert [(one.name, one.bytes, one.bits) for one in found] == ORDER


@pytest.mark.parametrize("one", quantizations(listing(REPOSITORY)), ids=lambda one: one.name)
def test_its_pattern_selects_its_parts_and_no_other_weights(one: Quantization) -> None:
    _, chosen, _ = choose_files(listing(REPOSITORY), one.pattern)
    names = {file.name for file in chosen if is_weight(file.name)}
    assert "mmproj-F16.gguf" in names
    assert sum(REPOSITORY[name] for name in names - {"mmproj-F16.gguf"}) == one.bytes
    assert a_spec(files=one.pattern).files == one.pattern


@pytest.mark.parametrize(
    ("names", "preferred", "count"),
    [
        ("tiny-Q4_0.gguf", False, 0),
        ("tiny-Q4_0-00001-of-00002.gguf tiny-Q4_0-00002-of-00002.gguf", False, 0),
        ("tiny-Q4_0.gguf tiny-Q8_0.gguf model.safetensors config.json", False, 0),
        ("tiny-Q4_0.gguf tiny-Q8_0.gguf model.safetensors config.json", True, 2),
        ("a/tiny-Q4_0.gguf b/tiny-Q4_0.gguf", False, 2),
        ("model.i1-Q4_K_M.gguf model.i1-IQ3_M.gguf", False, 2),
        ("it's[1]-Q4_0.gguf it's[1]-Q8_0.gguf", False, 2),
        ("", False, 0),
        ("config.json", False, 0),
    ],
)
def test_there_is_a_choice_where_gguf_is_there_more_than_once(
    names: str, preferred: bool, count: int
) -> None:
    files = listing(dict.fromkeys(names.split(), 1))
    found = quantizations(files, preferred=preferred)
    assert len(found) == count
    for one in found:
        assert a_spec(files=one.pattern)


@pytest.mark.parametrize(
    "names", [("tiny-8b-Q4_0.gguf", "tiny-70b-Q4_0.gguf"), ("llama.gguf", "qwen.gguf")]
)
def test_several_models_are_no_quantizations_of_one(names: tuple[str, str]) -> None:
    with pytest.raises(Failure, match=r"quantizations of one model") as caught:
        quantizations(listing(dict.fromkeys(names, 1)))
    assert caught.value.cause is Cause.SOURCE_INCOMPLETE


@pytest.mark.parametrize(
    ("files", "pattern", "taken"),
    [
        ("auto", "*Q4*", "*Q4*"),
        ("auto", None, None),
        ("*Q8*", "*Q4*", "*Q8*"),
        (None, "*Q4*", None),
    ],
)
def test_a_choice_fills_what_the_spec_leaves_open(
    files: str | None, pattern: str | None, taken: str | None
) -> None:
    choice = FilesChoice(pattern=pattern, reason="", verdicts=()) if pattern else None
    assert with_files(a_spec(files=files), choice).files == taken
