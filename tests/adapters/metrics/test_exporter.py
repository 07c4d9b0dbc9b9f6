"""The exporter reads each part of the ledger once, and what is now each time."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage.adapters.ledger import Ledger
from moorage.adapters.metrics.exporter import Exporter
from moorage.common.failures import Cause, Failure
from moorage.gateway.gateway import Gateway, GatewayHost, GatewayOptions
from moorage.releases.release import FailureRecord, StepRecord
from moorage.releases.states import ReleaseState
from tests.adapters.ledger.test_releases import running, starting
from tests.builders import a_release


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    yield ledger
    ledger.close()


@pytest.fixture
def exporter(ledger: Ledger, tmp_path: Path) -> Exporter:
    return Exporter(ledger, tmp_path)


def values(exporter: Exporter, name: str) -> dict[tuple[str, ...], float]:
    """The samples of a family that are not 0, by their labels in the order of their names."""
    families = {one.name: one for one in exporter.metrics()}
    samples = families[f"moorage_{name}"].samples
    return {
        tuple(one.labels[label] for label in sorted(one.labels)): one.value
        for one in samples
        if one.value and not one.name.endswith("_bucket")
    }


def test_nothing_is_counted_twice(ledger: Ledger, exporter: Exporter) -> None:
    first = running(ledger)
    for _ in range(2):
        assert values(exporter, "model_events") == {("deployed", "tiny"): 1}
    ledger.releases.move(first, ReleaseState.ERROR)
    running(ledger)
    expected = {("deployed", "tiny"): 2, ("lost", "tiny"): 1}
    assert values(exporter, "model_events") == expected
    assert values(Exporter(ledger, Path()), "model_events") == expected


def test_a_record_that_is_written_after_its_transition_is_counted(
    ledger: Ledger, exporter: Exporter
) -> None:
    release = starting(ledger)
    ledger.releases.give_up(release, "it failed")
    assert values(exporter, "failures") == {}
    failure = FailureRecord(cause=Cause.NO_FIT, detail="too large", suggestion="none")
    steps = (StepRecord(name="place", seconds=2.0),)
    ledger.releases.fail(release, "it failed", a_release(release, failure=failure, steps=steps))
    for _ in range(2):
        assert values(exporter, "failures") == {("no-fit",): 1}
        assert values(exporter, "phase_duration_seconds") == {("place",): 2.0}


def test_what_serves_is_what_serves_now(ledger: Ledger, exporter: Exporter) -> None:
    first = running(ledger)
    assert values(exporter, "model_up") == {("tiny", first): 1}
    ledger.releases.move(first, ReleaseState.UNREACHABLE)
    assert values(exporter, "model_up") == {}
    second = running(ledger, replaced=first)
    assert values(exporter, "model_up") == {("tiny", second): 1}


ON_ANOTHER = GatewayHost(
    name="gpu-1", address="ssh://gpu-1", bind="10.0.0.1", helper_image="moorage/helper:1"
)


def test_only_a_gateway_of_this_machine_is_asked(ledger: Ledger, exporter: Exporter) -> None:
    here, there = platform.node(), GatewayOptions(host=ON_ANOTHER, bind="10.0.0.1", image="envoy")
    for gateway in (
        Gateway(name="main", machine=here),
        Gateway(name="other", machine="another"),
        Gateway(name="far", machine=here, options=there),
    ):
        ledger.gateways.put(gateway)
    groups = exporter.targets("127.0.0.1:9464")
    assert [one["labels"]["gateway"] for one in groups] == ["main"]
    for name, cause in (
        ("main", Cause.RUNTIME_UNAVAILABLE),
        ("other", Cause.BAD_SETTING),
        ("far", Cause.BAD_SETTING),
        ("../main", Cause.BAD_SETTING),
    ):
        with pytest.raises(Failure) as caught:
            list(exporter.gateway_metrics(name))
        assert caught.value.cause is cause
