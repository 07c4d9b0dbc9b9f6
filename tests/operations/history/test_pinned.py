"""A spec with what its branches and tags stood for."""

from __future__ import annotations

import pytest

from moorage.common.failures import Cause, Failure
from moorage.models.assets import AssetRole, Pin
from moorage.operations.history.pinned import pinned_spec, require_same
from tests.builders import REVISION, a_model, a_release, a_spec

POET = {"name": "poet", "source": "hf://org/poet", "revision": "main"}
LOCAL = {"name": "local", "source": "file:///srv/local"}
SPEC = a_spec(
    revision="main",
    lora=[POET, LOCAL],
    speculative={"method": "eagle3", "tokens": 3, "model": "hf://org/small"},
)
PINS = (
    Pin(role=AssetRole.ADAPTER, name="poet", source="hf://org/poet", revision="a" * 40),
    Pin(role=AssetRole.ADAPTER, name="local", source="file:///srv/local", revision="local-1"),
    Pin(role=AssetRole.DRAFT, name="draft", source="hf://org/small", revision="d" * 40),
)


def test_the_model_its_adapters_and_its_draft_are_pinned() -> None:
    spec = pinned_spec(a_release(spec=SPEC, companions=PINS))
    assert spec.revision == REVISION
    assert [adapter.revision for adapter in spec.lora] == ["a" * 40, None]
    assert spec.speculative
    assert spec.speculative.revision == "d" * 40
    assert type(spec).model_validate(spec.model_dump(mode="json")) == spec


def test_a_directory_has_no_revision_to_pin() -> None:
    spec = a_spec(source="file:///srv/tiny")
    assert pinned_spec(a_release(spec=spec, revision="local-1")) == spec


def test_a_directory_that_has_changed_is_not_what_ran() -> None:
    release = a_release(spec=a_spec(source="file:///srv/tiny"), revision="local-1")
    require_same(release, a_model(revision="local-1"))
    with pytest.raises(Failure, match=r"local-1, which is not there any more; local-2") as failure:
        require_same(release, a_model(revision="local-2"))
    assert failure.value.cause == Cause.SOURCE_MISSING
