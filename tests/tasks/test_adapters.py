"""The folder of a model's adapters stays as long as a container may mount it."""

from __future__ import annotations

import pytest

from moorage.releases.states import ReleaseState
from tasks.adapters import tidy
from tasks.context import ledger, settings
from tests.builders import a_fleet, a_host, a_spec, a_workload
from tests.tasks.test_compare import ran
from tests.tasks.test_replace import PLACEMENT

pytestmark = pytest.mark.usefixtures("own_home")

S = ReleaseState


@pytest.mark.parametrize(
    ("states", "stays"),
    [
        ((), True),
        ((S.STOPPING, S.ASLEEP), True),
        ((S.STOPPING, S.ASLEEP, S.WAKING), True),
        ((S.STOPPING, S.STOPPED), False),
    ],
)
@pytest.mark.parametrize("runs", [False, True])
def test_a_failed_deploy_leaves_the_folder_to_a_release_that_serves_or_wakes(
    states: tuple[ReleaseState, ...], stays: bool, runs: bool
) -> None:
    ran(*states)
    failed, workload = ledger().releases.begin(a_spec(), "", ""), a_workload()
    ledger().claims.commit(failed, PLACEMENT.claims, a_fleet(a_host()))
    ledger().workloads.put(failed, workload)
    ledger().releases.give_up(failed, "engine-exited")
    if not runs:  # its claims are freed later
        ledger().workloads.drop(workload.name)
    folder = settings().adapters_folder("tiny")
    folder.mkdir(parents=True)
    tidy("tiny")
    assert folder.exists() == (stays or runs)
