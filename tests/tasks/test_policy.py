"""Who counts as the command line, and what a run may say about its own process."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from moorage.adapters.system.threads import in_thread
from moorage.common.failures import Cause, Failure
from moorage.inventory.fleet import Fleet
from moorage.policy.request import Channel, PolicyRefused, Submission, Usage, usage_of
from moorage.releases.release import Release
from tasks import policy
from tests.builders import a_host, a_placement, a_release, a_spec
from tests.policies import written_policy

OTHER = Fleet.model_validate({"hosts": [{"name": "local", "ports": "30000-30009"}]})


@pytest.fixture(autouse=True)
def _default_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOORAGE_HOME", str(tmp_path))
    monkeypatch.delenv("MOORAGE_POLICY", raising=False)
    monkeypatch.setenv("PWD", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def test_who_says_nothing_is_the_api_and_threads_and_tasks_know_the_command_line() -> None:
    async def seen() -> list[Channel]:
        async def one() -> Channel:
            return await in_thread(lambda: policy.current_submission().channel)

        return list(await asyncio.gather(one(), one()))

    assert asyncio.run(seen()) == [Channel.API, Channel.API]
    with policy.channel_scope(Channel.CLI):
        assert asyncio.run(seen()) == [Channel.CLI, Channel.CLI]
        on_record = Submission(channel=Channel.API, owner="somebody")
        with policy.recorded_scope(on_record, OTHER):
            assert policy.current_submission() == on_record
    assert asyncio.run(seen()) == [Channel.API, Channel.API]


def test_a_fleet_that_a_run_has_settled_is_not_judged_again_and_any_other_is() -> None:
    asyncio.run(policy.settled_fleet(Fleet()))
    with pytest.raises(PolicyRefused, match=r"`api\.own_fleet`"):
        asyncio.run(policy.settled_fleet(OTHER))
    with policy.recorded_scope(Submission(channel=Channel.CLI), OTHER):
        assert asyncio.run(policy.require_allowed(a_spec(), OTHER)) == OTHER
        with pytest.raises(PolicyRefused, match=r"`api\.own_fleet`"):
            asyncio.run(policy.settled_fleet(OTHER.model_copy(update={"share_models": False})))


def test_a_spec_is_judged_again_on_the_fleet_of_the_request(tmp_path: Path) -> None:
    hosts = [{"name": "one"}, {"name": "two"}]
    outer = Fleet.model_validate({"hosts": hosts})
    written_policy(tmp_path / "deployments" / "policy.yaml", "api: {hosts: [one]}")

    async def judged() -> list[str]:
        return [one.name for one in (await policy.require_allowed(a_spec(), outer)).hosts]

    async def twice() -> tuple[list[str], list[str]]:
        first = await judged()
        written_policy(tmp_path / "deployments" / "policy.yaml", "api: {hosts: [two]}")
        return first, await judged()

    with policy.recorded_scope(Submission(channel=Channel.API), outer):
        assert asyncio.run(twice()) == (["one"], ["two"])


def test_a_fleet_of_a_run_is_judged_again_except_while_its_plan_is_made(tmp_path: Path) -> None:
    file = tmp_path / "deployments" / "policy.yaml"
    written_policy(file, "api: {own_fleet: true}")

    async def judged() -> Fleet:
        return await policy.require_allowed(a_spec(), OTHER)

    async def after_an_approval() -> None:
        allowed = await judged()
        written_policy(file, "api: {own_fleet: false}")
        with policy.allowed_scope(allowed):
            assert await judged() == allowed
        await judged()

    with pytest.raises(PolicyRefused, match=r"`api\.own_fleet`"):
        asyncio.run(after_an_approval())


@pytest.mark.parametrize(
    ("brought", "named"),
    [
        ({"env": {"MOORAGE_POLICY": "/tmp/x"}}, r"env\.MOORAGE_POLICY"),
        ({"env": {"PYTHONPATH": "/tmp"}}, r"env\.PYTHONPATH"),
        ({"working_dir": "/tmp"}, "working_dir"),
        ({"command": "sh"}, "command"),
    ],
)
def test_a_run_of_the_api_sets_nothing_of_its_process(
    monkeypatch: pytest.MonkeyPatch, brought: dict[str, Any], named: str
) -> None:
    context = SimpleNamespace(flow_run=SimpleNamespace(job_variables=brought, created_by=None))
    monkeypatch.setattr("prefect.context.FlowRunContext.get", lambda: context)
    with monkeypatch.context() as patched:  # its messages would show what the file contains
        patched.setattr(policy, "load_policy", lambda _: pytest.fail("read the file of the run"))
        with pytest.raises(Failure, match=named) as raised:
            asyncio.run(policy.settled_fleet(Fleet()))
    assert raised.value.cause is Cause.POLICY_REFUSED
    with policy.channel_scope(Channel.CLI):
        asyncio.run(policy.settled_fleet(Fleet()))


def test_records_of_before_count_as_the_command_lines() -> None:
    content = a_release().model_dump(mode="json", exclude={"submission"})
    assert Release.model_validate(content).submission.channel is Channel.CLI


def test_what_a_model_holds_is_what_was_placed_for_it() -> None:
    spec = a_spec(replicas=2)
    placement = a_placement(spec, a_host())
    held = {(seat.host, index) for seat in placement.seats for index in seat.accelerators}
    assert usage_of(spec, placement) == Usage(replicas=2, accelerators=len(held))
    wanted = a_spec(replicas=2, placement={"accelerators": 3})
    assert usage_of(wanted) == Usage(replicas=2, accelerators=6)


def test_more_than_an_owner_may_have_is_refused_once_it_is_placed(tmp_path: Path) -> None:
    written_policy(tmp_path / "deployments" / "policy.yaml", "api: {accelerators: 0}")
    spec = a_spec()
    placement, own = a_placement(spec, a_host()), Submission(channel=Channel.API)
    with pytest.raises(PolicyRefused, match=r"`api\.accelerators`"):
        asyncio.run(policy.require_allowed_size(spec, placement, own))
    asyncio.run(policy.require_allowed_size(spec, placement, Submission()))
