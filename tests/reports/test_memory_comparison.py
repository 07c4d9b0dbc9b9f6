from __future__ import annotations

from typing import Any

import pytest

from moorage.common.units import GIB, MIB
from moorage.readiness.engine_facts import Measured
from moorage.reports.memory_report import comparison_rows
from tests.builders import a_measurement


def rows(predicted: dict[str, int], **measured: Any) -> list[tuple[str, ...]]:
    one = a_measurement(workload="w", measured=Measured(**measured), predicted=predicted)
    return [row[1:] for row in comparison_rows([one])]


@pytest.mark.parametrize(
    ("predicted", "measured", "row"),
    [
        (
            {"weights": GIB, "buffers": 100 * MIB},
            {"weights_bytes": GIB},
            ("weights", "1.1 GiB", "1.0 GiB", "-100.0 MiB"),
        ),
        (
            {"activation": GIB},
            {"activation_bytes": 3 * GIB},
            ("activation", "1.0 GiB", "3.0 GiB", "+2.0 GiB"),
        ),
        (
            {"cuda_graphs": GIB},
            {"graph_bytes": GIB // 2, "graph_reserve_bytes": GIB},
            ("CUDA graphs", "1.0 GiB", "1.0 GiB", "0 B"),
        ),
        ({}, {"kv_cache_bytes": GIB}, ("KV cache", "-", "1.0 GiB", "-")),
        ({"weights": GIB}, {"process_bytes": GIB}, ("worker process", "-", "1.0 GiB", "-")),
        ({}, {"kv_tokens": 2097152}, ("tokens in the cache", "-", "2,097,152", "-")),
        (
            {},
            {"concurrency": 3.388, "request_tokens": 131072},
            ("requests of 131,072 tokens at once", "-", "3.39", "-"),
        ),
    ],
)
def test_a_row_says_what_was_predicted_and_what_was_measured(
    predicted: dict[str, int], measured: dict[str, int], row: tuple[str, ...]
) -> None:
    assert rows(predicted, **measured) == [row]


def test_what_an_engine_did_not_tell_has_no_row() -> None:
    assert rows({"weights": GIB, "activation": GIB}) == []


def test_each_row_names_its_workload() -> None:
    both = [a_measurement(workload=name) for name in ("leader", "follower")]
    assert [row[0] for row in comparison_rows(both)] == ["leader"] * 7 + ["follower"] * 7
