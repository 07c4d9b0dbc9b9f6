"""The verdicts of a record, as the ledger keeps them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moorage.adapters.ledger.packed_verdicts import count_refusals, pack, unpack
from tests.builders import a_cpu_host, a_host, a_spec, placed

HOSTS = [a_host(f"gpu-{number}") for number in range(50)]
HOSTS[1:1] = [a_cpu_host(f"cpu-{number}") for number in range(50)]
RECORD: dict[str, Any] = {
    "placement": placed(a_spec(), *HOSTS).model_dump(mode="json"),
    "id": "tiny.v1",
}


def test_verdicts_come_back_as_they_were_and_equal_ones_are_kept_once() -> None:
    packed = pack(RECORD)
    assert unpack(json.loads(json.dumps(packed))) == RECORD
    assert len(packed["placement"]["verdicts"]["facts"]) == 2
    assert len(json.dumps(packed)) < len(json.dumps(RECORD)) / 4


@pytest.mark.parametrize("written", [RECORD, {"placement": None}, {"id": 7}, [1, 2]])
def test_a_record_that_was_never_packed_stays_as_it_is(written: Any) -> None:
    assert unpack(written) == written


def test_refusals_are_counted_in_both_shapes() -> None:
    verdicts = [record["placement"]["verdicts"] for record in (RECORD, pack(RECORD))]
    assert count_refusals(verdicts[0]) == count_refusals(verdicts[1])
    assert count_refusals(verdicts[1]).total() == 50
    assert not count_refusals(None)
