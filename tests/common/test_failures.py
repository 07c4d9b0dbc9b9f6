from __future__ import annotations

import pickle

import pytest

from moorage.common.failures import Cause, ExitCode, Failure


@pytest.mark.parametrize("cause", Cause)
def test_every_cause_has_facts_that_help(cause: Cause) -> None:
    assert cause.exit_code not in (ExitCode.OK, ExitCode.INTERNAL)
    assert cause.summary
    assert not cause.summary.endswith(".")
    assert cause.suggestion.endswith(".")


def test_only_what_may_pass_by_itself_is_retryable() -> None:
    assert {cause for cause in Cause if cause.retryable} == {
        Cause.HUB_RATE_LIMITED,
        Cause.HUB_UNAVAILABLE,
        Cause.DOWNLOAD_CORRUPT,
        Cause.CLAIM_CONFLICT,
        Cause.ACCELERATOR_STARTING,
        Cause.IMAGE_PULL_FAILED,
        Cause.REGISTRY_RATE_LIMITED,
        Cause.REGISTRY_UNAVAILABLE,
        Cause.RUNTIME_UNAVAILABLE,
        Cause.CLUSTER_UNAVAILABLE,
    }


def test_the_names_of_causes_are_stable() -> None:
    assert all(str(cause) == cause.name.lower().replace("_", "-") for cause in Cause)


def test_a_failure_reads_as_summary_and_detail() -> None:
    failure = Failure(Cause.NO_FIT, "gpu-1: too small")
    assert str(failure) == "The model fits nowhere: gpu-1: too small"
    assert failure.suggestion == Cause.NO_FIT.suggestion
    assert failure.cause.exit_code == ExitCode.NO_FIT


def test_a_failure_survives_a_pickle_whole() -> None:
    failure = Failure(
        Cause.ENGINE_KV_CACHE_TOO_SMALL,
        "exit code 1",
        suggestion="Set `context: 4096`.",
        log_tail="one\ntwo",
        evidence="two",
        named={"length": "4096"},
    )
    again = pickle.loads(pickle.dumps(failure))
    assert type(again) is Failure
    assert (vars(again), again.args, str(again)) == (vars(failure), failure.args, str(failure))
