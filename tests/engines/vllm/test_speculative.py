from __future__ import annotations

import json
from typing import Any

import pytest

from moorage.common.failures import Cause, Failure
from moorage.engines.vllm.speculative import Speculative, speculative_flags


@pytest.mark.parametrize(
    ("wish", "config"),
    [
        (
            {"method": "ngram", "tokens": 6, "shortest": 2, "longest": 4},
            {"num_speculative_tokens": 6, "prompt_lookup_max": 4, "prompt_lookup_min": 2},
        ),
        (
            {"method": "eagle3", "tokens": 2, "model": "/draft"},
            {"num_speculative_tokens": 2, "model": "/draft"},
        ),
        ({"method": "mtp"}, {}),
        ({"method": "mtp", "tokens": 1}, {"num_speculative_tokens": 1}),
    ],
)
def test_what_is_said_goes_into_one_option(wish: dict[str, Any], config: dict[str, Any]) -> None:
    (flag,) = speculative_flags(Speculative.model_validate(wish))
    name, value = flag.tokens
    assert (name, json.loads(value)) == (
        "--speculative-config",
        {"method": wish["method"], **config},
    )


@pytest.mark.parametrize(
    ("wish", "missing"),
    [
        ({"method": "ngram"}, "tokens"),
        ({"method": "eagle3", "model": "/draft"}, "tokens"),
        ({"method": "eagle3", "tokens": 2}, "model"),
        ({"method": "draft_model", "tokens": 2}, "model"),
    ],
)
def test_what_vllm_would_refuse_at_its_start_is_refused_now(
    wish: dict[str, Any], missing: str
) -> None:
    with pytest.raises(Failure, match=f"needs `{missing}`") as caught:
        speculative_flags(Speculative.model_validate(wish))
    assert caught.value.cause is Cause.BAD_SPEC


def test_without_a_wish_there_is_no_flag() -> None:
    assert speculative_flags(None) == ()
