"""Parameters that a flow refuses: what is wrong is told, and no value is logged."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from prefect.exceptions import ParameterTypeError

from flows.deploy_model import deploy_model

TOKEN = "hf_" + "A1b2C3d4" * 4
NAMELESS = "correct-horse"
"""A secret without a known form."""


class Kept(logging.Handler):
    """A handler that keeps the messages."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


@pytest.fixture
def logged() -> Iterator[list[str]]:
    handler, logger = Kept(), logging.getLogger("prefect.flows")
    logger.addHandler(handler)
    yield handler.messages
    logger.removeHandler(handler)


@pytest.mark.parametrize(
    "wrong",
    [
        {"engine": {"name": "vllm", "env": {"HF_TOKEN": TOKEN}}},
        {"context": "much", "engine": {"name": "vllm", "args": ["--api-key", NAMELESS]}},
        {"secrets": {"HF_TOKEN": TOKEN}},
        {"secrets": {"HF_TOKEN": f"{NAMELESS} battery"}},
    ],
)
def test_no_secret_is_logged(logged: list[str], wrong: dict[str, Any]) -> None:
    with pytest.raises(ParameterTypeError) as refused:
        deploy_model.validate_parameters({"spec": {"name": "a", "source": "hf://a/b", **wrong}})
    assert logged == ["Parameter validation failed for flow 'deploy-model'"]
    assert all(one not in str(refused.value) for one in (TOKEN, NAMELESS))
    assert "spec" in str(refused.value)
