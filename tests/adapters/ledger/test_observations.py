from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import text

from moorage.adapters.ledger import Ledger
from moorage.adapters.ledger.database import open_database
from moorage.common.failures import Cause, Failure
from moorage.common.units import GIB
from moorage.memory.calibration import CalibrationKey
from moorage.readiness.engine_facts import Measured
from moorage.releases.states import ReleaseState
from tests.builders import REVISION, a_key, a_measurement, a_spec


def begin(ledger: Ledger) -> str:
    return ledger.releases.begin(a_spec(), REVISION, "")


def test_what_was_measured_is_found_by_its_settings(ledger: Ledger) -> None:
    one = a_measurement(release=begin(ledger))
    ledger.measurements.record(one.release, [one])
    assert ledger.measurements.latest(a_key()) == one


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("architecture", "MistralForCausalLM"),
        ("shape", "80x8192x64x128256 bfloat16 completion"),
        ("engine", "other"),
        ("engine_version", "0.33.0"),
        ("accelerator_type", "rocm"),
        ("accelerator", "NVIDIA H200"),
        ("tensor_parallel_size", 2),
        ("pipeline_parallel_size", 2),
        ("max_num_batched_tokens", 8192),
        ("max_num_seqs", 64),
        ("eager", True),
        ("options", "--enable-lora"),
    ],
)
def test_any_other_setting_finds_nothing(ledger: Ledger, name: str, value: Any) -> None:
    one = a_measurement(release=begin(ledger))
    ledger.measurements.record(one.release, [one])
    assert name in CalibrationKey.model_fields
    assert ledger.measurements.latest(a_key(**{name: value})) is None


def test_the_newest_release_is_asked(ledger: Ledger) -> None:
    old, new = begin(ledger), begin(ledger)
    for release, gib in ((old, 9), (new, 1)):
        measured = Measured(activation_bytes=gib * GIB)
        ledger.measurements.record(release, [a_measurement(release=release, measured=measured)])
    found = ledger.measurements.latest(a_key())
    assert found
    assert (found.release, found.measured.activation_bytes) == (new, GIB)


def test_of_several_workloads_the_neediest_counts(ledger: Ledger) -> None:
    release = begin(ledger)
    rows = [
        a_measurement(
            release=release,
            workload=name,
            measured=Measured(activation_bytes=need, kv_cache_bytes=supply),
        )
        for name, need, supply in (("leader", 2, 8), ("follower", 3, 7))
    ]
    ledger.measurements.record(release, rows)
    found = ledger.measurements.latest(a_key())
    assert found
    assert found.measured == Measured(activation_bytes=3, kv_cache_bytes=7)
    assert found.workload == "leader"


def test_recording_twice_is_recording_once(ledger: Ledger, url: str) -> None:
    one = a_measurement(release=begin(ledger))
    for _ in range(2):
        ledger.measurements.record(one.release, [one])
    engine = open_database(url)
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT count(*) FROM measurements")) == 1
    engine.dispose()


def test_a_measurement_outlives_its_release(ledger: Ledger) -> None:
    one = a_measurement(release=begin(ledger))
    ledger.measurements.record(one.release, [one])
    ledger.releases.move(one.release, ReleaseState.ERROR)
    ledger.claims.hand_back(one.release, "", ())
    assert ledger.measurements.latest(a_key()) == one


def test_a_measurement_of_no_release_is_refused(ledger: Ledger) -> None:
    with pytest.raises(Failure) as caught:
        ledger.measurements.record("ghost.v1", [a_measurement(release="ghost.v1")])
    assert caught.value.cause is Cause.LEDGER_UNAVAILABLE
    assert ledger.measurements.latest(a_key()) is None


def test_facts_that_a_newer_moorage_wrote_are_passed_over(ledger: Ledger, url: str) -> None:
    one = a_measurement(release=begin(ledger), measured=Measured(activation_bytes=1))
    ledger.measurements.record(one.release, [one])
    engine = open_database(url)
    with engine.begin() as connection:
        facts = '{"activation_bytes": 1, "news": 2}'
        connection.execute(text("UPDATE measurements SET measured = :facts"), {"facts": facts})
    engine.dispose()
    assert ledger.measurements.latest(a_key()) == one
