from __future__ import annotations

import pytest

from moorage.engines.vllm.containers import baseline_container
from moorage.failures import Cause, Failure
from moorage.units import GIB


def test_the_baseline_mounts_the_parent_and_opens_every_port() -> None:
    made = baseline_container("/models/org/tiny", (40009, 40000), [("cuda", 7), ("cuda", 3)])
    assert made.mounts == ("/models/org",)
    assert made.ports == (40000, 40009)
    assert made.devices == {"cuda": (3, 7)}
    assert (made.uid, made.gid, made.shm_bytes) == (None, None, 10 * GIB)


def test_user_group_and_shared_memory_can_be_stated() -> None:
    made = baseline_container("/m/tiny", (40000,), [], (1000, 100, 0.5))
    assert (made.uid, made.gid, made.shm_bytes, made.devices) == (1000, 100, GIB // 2, {})


def test_accelerators_of_several_types_do_not_share_a_container() -> None:
    with pytest.raises(Failure, match="cann and cuda in one container") as caught:
        baseline_container("/m/tiny", (40000,), [("cuda", 0), ("cann", 0)])
    assert caught.value.cause is Cause.BAD_SPEC
