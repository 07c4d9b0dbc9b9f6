"""Image and weights are fetched side by side; what is undone is not fetched meanwhile."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from flows import deploy_model as deploy
from flows.deploy_model import ReleaseRollout
from moorage.common.failures import Cause, Failure
from moorage.common.saga import Saga
from tasks.release_lifecycle import ReleaseDraft
from tests.builders import a_release


@pytest.mark.parametrize("kept", [True, False])
async def test_what_is_fetched_is_removed_once_nothing_fetches_it_any_more(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kept: bool
) -> None:
    """Where it is kept instead, an image that cannot be had ends the deploy at once."""
    monkeypatch.setenv("MOORAGE_HOME", str(tmp_path))
    monkeypatch.setenv("MOORAGE_KEEP_FETCHED", str(kept).lower())
    done, placed = list[str](), cast("Any", SimpleNamespace(model=None))

    async def nothing(*_: object) -> None: ...

    async def no_image(_placed: object) -> None:
        raise Failure(Cause.IMAGE_PULL_FAILED, "no such tag")

    async def stage(_placed: object) -> None:
        await asyncio.sleep(0.2)
        done.append("staged")

    monkeypatch.setattr(ReleaseDraft, "enter", nothing)
    monkeypatch.setattr(deploy, "stage", stage)
    monkeypatch.setattr(ReleaseRollout, "_arm_fetching", nothing)
    context = cast("Any", SimpleNamespace(journal=None))
    source = cast("Any", SimpleNamespace(pull_image=no_image))
    rollout = ReleaseRollout(context, source, cast("Any", None), None)
    rollout._draft.release = a_release(created_at=datetime.now(UTC))
    with pytest.raises(Failure, match="no such tag"):
        await rollout._image_and_stage(Saga(lambda *_: None), placed)
    assert done == ([] if kept else ["staged"])
