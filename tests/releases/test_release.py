from __future__ import annotations

import pytest

from moorage.models.pin import AssetRole, Pin
from moorage.releases.release import Release
from moorage.releases.release_row import ReleaseRow, release_id
from tests.builders import REVISION, a_release, a_row, a_spec, a_workload


def test_the_id_names_model_and_number() -> None:
    assert release_id("tiny", 3) == "tiny.v3"


def test_a_record_survives_its_json() -> None:
    record = a_release()
    assert Release.model_validate_json(record.model_dump_json()) == record


@pytest.mark.parametrize(
    ("redeploy", "back_to", "follows"),
    [
        ({}, "", False),
        ({"on_moved_branch": "redeploy"}, "", True),
        ({"on_moved_branch": "redeploy"}, "tiny.v0", False),
        ({"on_moved_branch": "redeploy", "approval": "required"}, "", False),
    ],
)
def test_a_release_follows_its_source_unasked_only_where_its_spec_says_so(
    redeploy: dict[str, str], back_to: str, follows: bool
) -> None:
    release = a_release(spec=a_spec(redeploy=redeploy), rolled_back_to=back_to)
    assert release.follows_its_source is follows


def pin(revision: str = "a1") -> Pin:
    return Pin(role=AssetRole.ADAPTER, name="poet", source="hf://org/poet", revision=revision)


def row(release: Release | None, *adapters: Pin) -> ReleaseRow:
    workloads = (a_workload(adapters=adapters),) if release else ()
    return a_row(release, workloads=workloads)


def test_a_release_is_of_a_spec_only_at_the_revisions_of_everything() -> None:
    serving = row(a_release(companions=(pin(),)))
    assert serving.is_of(a_spec(), REVISION, (pin(),))
    assert not serving.is_of(a_spec(), REVISION, (pin("b2"),))
    assert not serving.is_of(a_spec(), REVISION, ())
    assert not serving.is_of(a_spec(), "b" * 40, (pin(),))
    assert not serving.is_of(a_spec(context=4096), REVISION, (pin(),))


def test_while_it_serves_its_record_shows_what_was_loaded_since() -> None:
    record = a_release(workloads=(a_workload(),))
    now = row(record, pin()).as_it_runs
    assert now
    assert now.workloads[0].adapters == (pin(),)
    assert row(None).as_it_runs is None
