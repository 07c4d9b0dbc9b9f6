"""The same work on many hosts, with a limit, without a Prefect server."""

from __future__ import annotations

import asyncio

import pytest

from moorage.common.failures import Cause, Failure
from tasks.flow_task import FlowTask, flow_task
from tasks.map_hosts import MOST_TASK_RUNS, HostCall, gather_all, map_hosts

HOSTS = tuple(f"gpu-{number}" for number in range(1, 7))


class Crew:
    """Work on hosts that ends when the test says so; it knows how many were at it at once."""

    def __init__(self, **failures: Exception) -> None:
        self.failures = {host.replace("_", "-"): error for host, error in failures.items()}
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.most = 0

    async def work(self, host: str) -> str:
        self.begun.append(host)
        self.most = max(self.most, len(self.begun) - len(self.ended))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        self.ended.append(host)
        if error := self.failures.get(host):
            raise error
        return host.upper()


def away(what: str) -> Failure:
    return Failure(Cause.RUNTIME_UNAVAILABLE, what)


async def run(crew: Crew, at_once: int = 8, hosts: tuple[str, ...] = HOSTS) -> list[str]:
    calls = [HostCall(host, "local", {"host": host}) for host in hosts]
    return await map_hosts(flow_task("work", "work on {host}")(crew.work), calls, at_once)


async def test_results_are_in_the_order_of_the_hosts() -> None:
    assert await run(Crew()) == [host.upper() for host in HOSTS]
    assert await run(Crew(), hosts=()) == []


@pytest.mark.parametrize(("at_once", "most"), [(1, 1), (2, 2), (8, 6)])
async def test_so_many_are_at_work_at_once(at_once: int, most: int) -> None:
    crew = Crew()
    await run(crew, at_once)
    assert crew.most == most
    assert sorted(crew.ended) == list(HOSTS)


async def test_a_slow_host_holds_up_nobody_but_the_end() -> None:
    release, done = asyncio.Event(), list[str]()

    @flow_task("work", "work on {host}")
    async def work(host: str) -> str:
        if host == "gpu-1":
            await release.wait()
        done.append(host)
        if len(done) == len(HOSTS) - 1:
            release.set()
        return host

    calls = [HostCall(host, "local", {"host": host}) for host in HOSTS]
    await asyncio.wait_for(map_hosts(work, calls, 2), 10)
    assert done[-1] == "gpu-1"


async def test_all_that_went_wrong_is_told_and_the_cause_is_that_of_the_first() -> None:
    full = Failure(Cause.DISK_FULL, "no room")
    crew = Crew(gpu_2=away("silent"), gpu_4=full, gpu_5=away("silent"))
    with pytest.raises(Failure) as caught:
        await run(crew)
    assert caught.value.cause is Cause.RUNTIME_UNAVAILABLE
    assert caught.value.detail == "gpu-2, gpu-5: silent; gpu-4: no room"
    assert "Start Docker on the host" in caught.value.suggestion
    assert "Free some space" in caught.value.suggestion
    assert sorted(crew.ended) == list(HOSTS)


async def test_once_one_has_failed_no_other_is_begun_and_that_is_told() -> None:
    crew = Crew(gpu_1=away("silent"))
    with pytest.raises(Failure, match="gpu-1: silent; not begun on gpu-3, gpu-4, gpu-5, gpu-6"):
        await run(crew, at_once=2)
    assert crew.begun == crew.ended == ["gpu-1", "gpu-2"]


async def test_the_failure_of_the_only_host_is_left_as_it_is() -> None:
    failure = away("silent")
    with pytest.raises(Failure) as caught:
        await run(Crew(gpu_1=failure), hosts=("gpu-1",))
    assert caught.value is failure


@pytest.mark.parametrize("error", [TimeoutError("late"), ZeroDivisionError()])
async def test_what_is_no_failure_of_a_host_is_never_hidden(error: Exception) -> None:
    with pytest.raises(type(error)):
        await run(Crew(gpu_1=away("silent"), gpu_2=error))


async def test_who_is_cancelled_ends_what_it_began() -> None:
    begun = asyncio.Event()

    @flow_task("work", "work on {host}")
    async def work(host: str) -> str:
        begun.set()
        await asyncio.sleep(3600)
        return host

    calls = [HostCall(host, "local", {"host": host}) for host in HOSTS]
    job = asyncio.ensure_future(map_hosts(work, calls, 2))
    await begun.wait()
    job.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(job, 10)


async def test_every_job_ends_before_the_first_error_counts() -> None:
    done = list[str]()

    async def job(name: str, error: Exception | None) -> str:
        await asyncio.sleep(0)
        done.append(name)
        if error:
            raise error
        return name

    assert await gather_all(job("a", None), job("b", None)) == ["a", "b"]
    done.clear()
    with pytest.raises(Failure, match="silent"):
        await gather_all(job("a", away("silent")), job("b", None))
    assert done == ["a", "b"]


async def test_a_single_call_is_no_task_run_of_its_own_nor_are_more_than_anybody_reads() -> None:
    many = [f"gpu-{number}" for number in range(MOST_TASK_RUNS + 1)]
    tracked: list[str] = []

    class Seen(FlowTask[[str], str]):
        async def __call__(self, host: str) -> str:
            tracked.append(host)
            return await self.untracked(host)

    async def work(host: str) -> str:
        return host

    seen = Seen(work, "work", "work on {host}", None, retried=False)
    for hosts in (HOSTS[:1], HOSTS[:3], many):
        await map_hosts(seen, [HostCall(host, "local", {"host": host}) for host in hosts], 8)
    assert tracked == list(HOSTS[:3])
