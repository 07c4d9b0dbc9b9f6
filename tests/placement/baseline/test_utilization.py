from __future__ import annotations

import pytest

from moorage.placement.baseline.parameters import Parameters
from moorage.placement.baseline.refusal import ErrorClass, RefusedRequest
from moorage.placement.baseline.utilization import reads_config, utilization
from tests.placement.baseline.builders import a_request

QWEN = "Qwen3ForCausalLM"


@pytest.mark.parametrize(
    ("categories", "architecture", "line", "share"),
    [
        ("", "X", "", 0.9),
        ("llm", "X", "", 0.9),
        ("speech_to_text", "X", "", 0.9),
        ("embedding llm", "X", "", 0.9),
        ("embedding", "X", "", 0.0),
        ("reranker", "X", "", 0.0),
        ("text_to_speech", "X", "", 0.0),
        ("embedding", QWEN, "", 0.9),
        ("reranker", "Qwen3ForSequenceClassification", "", 0.9),
        ("embedding", "Qwen3VLForConditionalGeneration", "", 0.9),
        ("embedding", "Qwen3VLForSequenceClassification", "", 0.0),
        ("image", QWEN, "", 0.0),
        ("embedding", QWEN, "--omni", 0.0),
        ("embedding", "X", f'--hf-overrides={{"architectures": ["{QWEN}"]}}', 0.0),
        ("llm", "X", "--gpu-memory-utilization=0.5", 0.5),
        ("embedding", "X", "--gpu-memory-utilization 0.5", 0.5),
        ("llm", "X", "--gpu-memory-utilization=0", 0.0),
        ("llm", "X", "--gpu-memory-utilization=1", 1.0),
        ("llm", "X", "--gpu-memory-utilization=", 0.9),
        ("llm", "X", "--gpu_memory_utilization=0.5", 0.9),
    ],
)
def test_the_share_of_each_accelerator(
    categories: str, architecture: str, line: str, share: float
) -> None:
    request = a_request(categories=tuple(categories.split()), architectures=(architecture,))
    assert utilization(request, Parameters([line])) == share


@pytest.mark.parametrize("value", ["much", "nan", "inf", "90%"])
def test_a_share_is_a_number(value: str) -> None:
    with pytest.raises(RefusedRequest) as caught:
        utilization(a_request(), Parameters([f"--gpu-memory-utilization={value}"]))
    assert caught.value.refusal.error is ErrorClass.UNREADABLE


@pytest.mark.parametrize(
    ("categories", "line", "reads"),
    [
        ("llm", "", True),
        ("", "", True),
        ("llm image", "", False),
        ("text_to_speech", "", False),
        ("llm", "--omni", False),
        ("llm", "--omni=false", True),
    ],
)
def test_image_and_speech_models_have_no_config_to_read(
    categories: str, line: str, reads: bool
) -> None:
    request = a_request(categories=tuple(categories.split()))
    assert reads_config(request, Parameters([line])) is reads
