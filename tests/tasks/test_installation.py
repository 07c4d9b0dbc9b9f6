"""Engines that a release needs are not removed, nor images that any container uses."""

from __future__ import annotations

import pytest

from moorage.common.failures import Cause, Failure
from moorage.engines.registry import ENGINES
from moorage.releases.states import ReleaseState
from moorage.spec import EngineName
from tasks import installation
from tasks.context import ledger
from tasks.installation import remove_installed
from tests.builders import a_claim, a_cpu_host, a_fleet, a_host, a_spec

VLLM = ENGINES[EngineName.VLLM]
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


OLD, NEW = "vllm/vllm-openai:v0.31.0", "vllm/vllm-openai:v0.32.0"


class Daemon:
    """A daemon on which a container uses the older image."""

    def __init__(self, _address: str) -> None:
        """Have nothing to connect to."""

    def remove(self, reference: str) -> str:
        return "container 1f is using its referenced image" if reference == OLD else ""


@pytest.mark.usefixtures("own_home")
def test_an_image_that_stays_is_named_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "DockerImages", Daemon)
    host = a_host(images=frozenset({OLD, NEW}))
    assert remove_installed(VLLM, host, "0.32.0") == (NEW,)
    words = f"{host.name} keeps {OLD}: container 1f is using .*; removed: {NEW}"
    with pytest.raises(Failure, match=words) as refused:
        remove_installed(VLLM, host, "")
    assert refused.value.cause == Cause.ENGINE_IN_USE
