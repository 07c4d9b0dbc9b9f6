"""Engines that a release needs are not removed."""

from __future__ import annotations

import pytest

from moorage.common.failures import Cause, Failure
from moorage.engines.registry import ENGINES
from moorage.releases.states import ReleaseState
from moorage.spec import EngineName
from tasks.context import ledger
from tasks.installation import remove_installed
from tests.builders import a_claim, a_cpu_host, a_fleet, a_spec

TRANSFORMERS = ENGINES[EngineName.TRANSFORMERS]


@pytest.mark.usefixtures("own_home")
def test_an_engine_stays_while_a_model_is_deployed_with_it() -> None:
    fleet = a_fleet(a_cpu_host())
    spec = a_spec(engine={"name": "transformers"})
    release = ledger().releases.begin(spec, "main", "")
    ledger().claims.commit(release, [a_claim(host="cpu-1")], fleet)
    ledger().releases.move(release, ReleaseState.STARTING)
    host = a_cpu_host().with_claims(ledger().claims.all())

    with pytest.raises(Failure, match="transformers on cpu-1 is used by tiny") as refused:
        remove_installed(TRANSFORMERS, host, "")

    assert refused.value.cause == Cause.ENGINE_IN_USE
    ledger().releases.give_up(release, "cancelled")
    assert remove_installed(TRANSFORMERS, host, "") == ()
