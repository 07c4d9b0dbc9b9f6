from __future__ import annotations

import pickle
from typing import Any

from prefect.utilities.collections import visit_collection

from moorage.memory.demand import MemoryModel
from moorage.memory.options import MemoryOptions
from moorage.models.source import TensorHeader, TensorHeaders
from tests.builders import a_model

SHAPE = (4096, 4096)
HEADERS = TensorHeaders((f"layers.{number}.weight", "BF16", SHAPE) for number in range(1000))


def test_equal_headers_are_kept_once() -> None:
    assert len(HEADERS) == 1000
    assert len({id(header) for header in HEADERS.values()}) == 1
    assert HEADERS["layers.7.weight"] == TensorHeader(dtype="BF16", shape=SHAPE)
    assert HEADERS["layers.7.weight"].elements == 4096 * 4096


def test_headers_are_no_part_of_a_record() -> None:
    model = a_model(headers=HEADERS)
    assert "headers" not in model.model_dump()
    assert "layers" not in model.model_dump_json()
    assert "layers" not in repr(model)
    again = type(model).model_validate_json(model.model_dump_json())
    assert len(again.headers) == 0
    assert again.model_copy(update={"headers": HEADERS}) == model


def test_headers_survive_the_way_to_another_process() -> None:
    assert pickle.loads(pickle.dumps(HEADERS)) == HEADERS


def test_whoever_walks_through_the_arguments_of_a_task_does_not_see_them() -> None:
    seen: list[object] = []
    model = a_model(headers=HEADERS)
    arguments: dict[str, Any] = {
        "model": model,
        "memory": MemoryModel({}, HEADERS, MemoryOptions()),
    }
    visit_collection(arguments, seen.append, return_data=False)
    assert len(seen) < 50
    assert not any(isinstance(item, TensorHeader) for item in seen)
