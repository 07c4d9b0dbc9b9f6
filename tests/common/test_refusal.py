from __future__ import annotations

import copy
import pickle

import pytest

from moorage.common.refusal import Reason, Refusal

REFUSALS = [
    Refusal(Reason.LABELS, "lacks zone"),
    Refusal(reason=Reason.RAM, needed=5, available=3, held_by=("a.v1",)),
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda one: one.reason)
def test_a_refusal_reaches_another_process_whole(refusal: Refusal) -> None:
    for same in (pickle.loads(pickle.dumps(refusal)), copy.copy(refusal)):
        assert str(same) == str(refusal)
        assert (same.reason, same.needed) == (refusal.reason, refusal.needed)
        assert same.available == refusal.available
        assert same.held_by == refusal.held_by


def test_it_says_its_reason_where_nothing_more_is_known() -> None:
    assert str(Refusal(Reason.CORES)) == "cores"
