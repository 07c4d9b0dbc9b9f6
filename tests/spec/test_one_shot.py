from __future__ import annotations

from typing import Any

import pytest

from moorage.spec import ModelSpec
from moorage.spec.one_shot import is_one_shot, one_shot_name, one_shot_spec, quick_spec


@pytest.mark.parametrize(
    ("source", "fields", "expected"),
    [
        (
            "Qwen/Qwen3-8B",
            {},
            {
                "name": "run-qwen3-8b-ab12cd",
                "source": "hf://Qwen/Qwen3-8B",
                "files": "auto",
            },
        ),
        (
            "hf://Qwen/Qwen3-8B-GGUF:Q4_K_M",
            {"context": 4096, "files": ""},
            {
                "name": "run-qwen3-8b-gguf-ab12cd",
                "source": "hf://Qwen/Qwen3-8B-GGUF",
                "files": "*Q4_K_M*",
                "context": 4096,
            },
        ),
        (
            "a/b:*Q8*",
            {"files": "x*"},
            {"name": "run-b-ab12cd", "source": "hf://a/b", "files": "x*"},
        ),
        (
            "file:///models/Tiny Model.gguf",
            {},
            {
                "name": "run-tiny-model-gguf-ab12cd",
                "source": "file:///models/Tiny Model.gguf",
                "files": "auto",
            },
        ),
        (
            "s3://bucket/models/x/",
            {},
            {"name": "run-x-ab12cd", "source": "s3://bucket/models/x/", "files": "auto"},
        ),
    ],
)
def test_a_name_becomes_a_spec(
    source: str, fields: dict[str, Any], expected: dict[str, Any]
) -> None:
    content = one_shot_spec(source, "ab12cd", **fields)
    assert content == expected
    assert ModelSpec.model_validate(content).name == expected["name"]


@pytest.mark.parametrize(
    ("source", "files"), [("org/tiny-GGUF", "auto"), ("org/tiny-GGUF:Q4_0", "*Q4_0*")]
)
def test_the_short_form_takes_what_fits_unless_a_quantization_is_named(
    source: str, files: str
) -> None:
    content = quick_spec("tiny", source, "auto", "auto", "4096", "5m")
    spec = ModelSpec.model_validate(content)
    assert (spec.files, spec.context, spec.source) == (files, 4096, "hf://org/tiny-GGUF")


@pytest.mark.parametrize("source", ["", "///", "é" * 300, "x" * 300, "a/-.-"])
def test_any_source_gives_a_name_that_a_model_may_have(source: str) -> None:
    name = one_shot_name(source, "ab12cd")
    assert ModelSpec.model_validate({"name": name, "source": "hf://a/b"}).name == name
    assert is_one_shot(name)
    assert not is_one_shot("running-llama")
