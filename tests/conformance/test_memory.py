from pathlib import Path

import pytest

from tests.conformance.memory import Model

DATA = Path(__file__).parent / "data"
MODELS = sorted(
    str(path.relative_to(DATA))
    for folder in ("memory", "memory-oracle")
    for path in (DATA / folder).iterdir()
    if path.is_dir()
)
"""Large models, and small ones of other kinds (README.md of `memory-oracle`)."""


@pytest.mark.parametrize("name", MODELS)
def test_the_prediction_is_what_vllm_says(name: str) -> None:
    model = Model(DATA / name)
    assert model.rows
    different = [(row["input"], found) for row in model.rows if (found := model.differences(row))]
    assert not different
