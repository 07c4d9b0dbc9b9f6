"""Bringing a model: what has to be there first, before a neighbour lends."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from moorage.adapters.transfer import bring_model as bringing
from moorage.adapters.transfer.host_store import Staged
from moorage.common.failures import Cause, Failure
from moorage.inventory.access import Access
from moorage.inventory.snapshot import HostSnapshot
from moorage.models.source import ResolvedModel
from tests.builders import a_model

TARGET, LENDER = (
    HostSnapshot(name=name, address=f"ssh://{name}", store="/srv/models")
    for name in ("gpu-2", "gpu-1")
)


def test_a_neighbour_lends_only_once_the_helper_is_there_that_asks_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody asks a lender while an image is pulled, and it ends when nobody asks."""
    done: list[str] = []

    def have_helper(host: HostSnapshot, *_: Any) -> str:
        done.append(f"image on {host.name}")
        return "helper:1"

    @contextlib.contextmanager
    def lend_model(host: HostSnapshot, *_: Any) -> Iterator[dict[str, Any]]:
        done.append(f"{host.name} lends")
        yield {"name": host.name}
        done.append(f"{host.name} ends")

    class Store:
        def __init__(self, *_: Any, **__: Any) -> None:
            done.append("staging")

        def stage(self, *_: Any) -> Staged:
            return Staged(path="/srv/models/x", brought={}, helper="helper:1")

    monkeypatch.setattr(bringing, "ensure_helper_image", have_helper)
    monkeypatch.setattr(bringing, "lend_model", lend_model)
    monkeypatch.setattr(bringing, "HostStore", Store)
    delivery = bringing.Delivery(a_model(), TARGET, "/srv/models/models", [], LENDER)
    bringing.bring(delivery, lambda *_: None, deadline_seconds=5, say=print)
    assert done == ["image on gpu-2", "gpu-1 lends", "staging", "gpu-1 ends"]


@pytest.mark.parametrize(
    ("mirrors", "staged", "cause", "sent"),
    [
        ([{"name": "hub"}], True, None, [False]),
        ([], True, None, [True]),  # offline, or a directory of this machine
        ([{"name": "hub"}], True, Cause.HUB_UNAVAILABLE, [False, True]),
        ([{"name": "hub"}], False, Cause.HUB_UNAVAILABLE, [False]),
        ([{"name": "hub"}], True, Cause.SOURCE_GATED, [False]),
        ([], True, Cause.HUB_UNAVAILABLE, [True]),
    ],
)
def test_this_machine_sends_its_copy_where_a_host_does_not_reach_the_source(
    monkeypatch: pytest.MonkeyPatch,
    mirrors: list[dict[str, Any]],
    staged: bool,
    cause: Cause | None,
    sent: list[bool],
) -> None:
    tries: list[bool] = []

    class Store:
        def __init__(self, *_: Any, sends: bool) -> None:
            tries.append(sends)

        def stage(self, _: ResolvedModel, job: str, *__: Any) -> Staged:
            assert bool(json.loads(job)["mirrors"]) is not tries[-1]
            if cause and (len(tries) == 1):
                raise Failure(cause, "no route")
            return Staged(path="/srv/models/x", brought={}, helper="helper:1")

    monkeypatch.setattr(bringing, "ensure_helper_image", lambda *_: "helper:1")
    monkeypatch.setattr(bringing, "HostStore", Store)
    model = a_model(staged=staged)
    delivery = bringing.Delivery(model, TARGET, "/srv/models/models", mirrors)
    fails = nullcontext() if cause is None or len(sent) > 1 else pytest.raises(Failure)
    said: list[str] = []
    with fails:
        bringing.bring(delivery, lambda *_: None, deadline_seconds=5, say=said.append)
    assert tries == sent
    assert [("this machine sends" in line) for line in said] == [True] * (len(sent) - 1)


@pytest.mark.parametrize("words", ['{"port": "x"}', '{"port": 99999999}', "[1]", "5", "{}", "x"])
def test_a_lender_that_answers_nonsense_is_not_asked(
    monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    monkeypatch.setattr(bringing, "start_with_input", lambda *_: None)
    monkeypatch.setattr(bringing, "last_line", lambda _: words)
    with pytest.raises(Failure) as caught:
        bringing._wait_for_port(None, "")  # type: ignore[arg-type]
    assert caught.value.cause is Cause.RUNTIME_UNAVAILABLE


def test_the_proxies_of_dockers_own_client_go_into_the_job(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    default = {"httpsProxy": "http://ops:s3cret@proxy:3128"}
    configuration = {"proxies": {"default": default, "tcp://gpu-2:2376": {}}}
    (tmp_path / "config.json").write_text(json.dumps(configuration))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    variables = bringing.proxies_for(Access(address="ssh://gpu-1"))
    assert variables["https_proxy"] == "http://ops:s3cret@proxy:3128"
    assert bringing.proxies_for(Access(address="tcp://gpu-2:2376")) == {}
    job = bringing.job_of(
        a_model(), [], workspace="new.partial", workers=1, seconds=1, proxies=variables
    )
    assert json.loads(job)["environment"] == variables
