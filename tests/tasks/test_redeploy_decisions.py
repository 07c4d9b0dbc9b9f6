"""Which redeployments go on at the same time."""

from __future__ import annotations

from types import SimpleNamespace
from uuid import UUID

import pytest

from moorage.adapters.ledger.locks import LockHeld
from tasks import redeploy_decisions
from tasks.redeploy_decisions import sole_watch

pytestmark = pytest.mark.usefixtures("own_home")

FIRST, OTHER = UUID(int=1), UUID(int=2)


@pytest.mark.parametrize(
    ("second", "deployment", "goes_on"),
    [
        ("sha256:a", FIRST, False),
        ("sha256:b", FIRST, True),
        ("sha256:a", OTHER, True),
        ("sha256:a", None, True),
    ],
    ids=["the same", "other parameters", "another deployment", "no deployment"],
)
async def test_one_run_of_a_deployment_watches_with_the_same_parameters(
    monkeypatch: pytest.MonkeyPatch, second: str, deployment: UUID | None, goes_on: bool
) -> None:
    def begun_by(one: UUID | None) -> None:
        run = SimpleNamespace(id=UUID(int=9), deployment_id=one)
        monkeypatch.setattr(redeploy_decisions, "current_flow_run", lambda: run)

    begun_by(FIRST)
    async with sole_watch("sha256:a"):
        begun_by(deployment)
        if goes_on:
            async with sole_watch(second):
                pass
        else:
            with pytest.raises(LockHeld, match="held by flow run"):
                async with sole_watch(second):
                    pass
    begun_by(FIRST)
    async with sole_watch("sha256:a"):
        pass
