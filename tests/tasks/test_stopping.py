from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import cast

import pytest

from moorage.common.failures import Cause, Failure
from moorage.engines.base import Busy
from moorage.engines.registry import ENGINES
from moorage.engines.stopping import Drained, Ending
from moorage.engines.vllm.arguments import IN_FLIGHT
from moorage.engines.workload import Workload
from moorage.releases.states import ReleaseState
from moorage.spec import EngineName
from tasks import stopping
from tasks.context import ledger
from tasks.stopping import POLL_SECONDS, end_drained, until_gateways_idle, until_idle
from tests.builders import REVISION, a_spec, a_workload

ONE = (a_workload(endpoint="http://a"),)
TWO = (*ONE, a_workload("other", endpoint="http://b"))
SLOW, GONE = TimeoutError(), ConnectionError()

Reading = int | str | Exception


class Clock:
    """Time passes only while somebody waits; at some moment a signal may arrive."""

    def __init__(self, signal: float = float("inf")) -> None:
        self.now, self._signal = 0.0, signal

    def __call__(self) -> float:
        return self.now

    def wait(self, timeout: float) -> bool:
        self.now += timeout
        return self.now >= self._signal


def engine(clock: Clock, *readings: Reading, key: str = "") -> Callable[[str, float, str], str]:
    """Answers one reading after the other; the last one for ever."""
    left: Iterator[Reading] = iter(readings)
    last = readings[-1]

    def read(url: str, timeout: float, api_key: str) -> str:
        assert url.endswith("/metrics")
        if api_key != key:
            return ""
        reading = next(left, last)
        if isinstance(reading, TimeoutError):
            clock.now += timeout
        if isinstance(reading, Exception):
            raise reading
        return reading if isinstance(reading, str) else f"vllm:num_requests_running {reading}"

    return read


def drained(
    *readings: Reading,
    drain: float = 10,
    workloads: tuple[Workload, ...] = ONE,
    signal: float = float("inf"),
    busy: Busy = IN_FLIGHT,
) -> Drained:
    clock = Clock(signal)
    how = Ending(busy=busy, drain_seconds=drain, grace_seconds=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stopping, "time", SimpleNamespace(monotonic=clock))
        patch.setattr(stopping, "read_metrics", engine(clock, *readings))
        return until_idle(workloads, how, clock.wait)


def test_an_idle_engine_is_asked_twice_and_not_waited_for() -> None:
    assert drained(0) == Drained(seconds=round(POLL_SECONDS, 1), left=0)


def test_a_request_that_is_just_on_its_way_is_seen_the_second_time() -> None:
    found = drained(0, 1, 1, 0)
    assert (found.waited, found.left) == (True, 0)


@pytest.mark.parametrize(("api_key", "left"), [("sesame", 0), ("", None)])
def test_metrics_that_require_a_key_are_read_with_it(
    monkeypatch: pytest.MonkeyPatch, api_key: str, left: int | None
) -> None:
    clock = Clock()
    monkeypatch.setattr(stopping, "time", SimpleNamespace(monotonic=clock))
    monkeypatch.setattr(stopping, "read_metrics", engine(clock, 1, 0, key="sesame"))
    how = Ending(busy=IN_FLIGHT, drain_seconds=10, grace_seconds=1)
    assert until_idle(ONE, how, clock.wait, api_key).left == left


SGLANG = cast(Busy, ENGINES[EngineName.SGLANG].busy)


def sglang(post: int | None, running: int = 0) -> str:
    """Metrics of SGLang 0.5.23 (None: of 0.5.6) to a request for them, which is one over HTTP."""
    active = 'sglang:http_requests_active{endpoint="%s",method="%s"} %d'
    answering = [active % ("/metrics", "GET", 1), active % ("/v1/completions", "POST", post or 0)]
    counts = [f'sglang:num_running_reqs{{pp_rank="0"}} {running}', "sglang:num_queue_reqs 0"]
    return "\n".join([*counts, *(answering if post is not None else [])])


@pytest.mark.parametrize(
    ("readings", "waited", "seconds"),
    [
        ([sglang(0)], False, 1),
        ([sglang(1), sglang(1), sglang(1), sglang(0)], True, 4),
        ([sglang(1), sglang(1, running=3), sglang(0, running=3), sglang(0)], True, 4),
        ([sglang(None, running=1), sglang(None)], True, 2),
    ],
    ids=["idle", "counted over HTTP alone", "counted twice", "not counted over HTTP"],
)
def test_requests_that_only_http_counts_are_waited_for(
    readings: list[Reading], waited: bool, seconds: int
) -> None:
    found = drained(*readings, busy=SGLANG)
    assert found == Drained(seconds=round(seconds * POLL_SECONDS, 1), waited=waited, left=0)


def test_requests_are_waited_for_until_the_last_one_has_ended() -> None:
    found = drained(3, 2, 1, 0)
    assert found == Drained(seconds=4 * POLL_SECONDS, waited=True, left=0)


def test_nobody_waits_longer_than_he_was_told() -> None:
    found = drained(2, drain=3)
    assert (found.left, found.waited) == (2, True)
    assert found.seconds == 3


def test_an_engine_that_is_gone_has_nothing_in_flight() -> None:
    assert drained(GONE) == Drained(left=0)
    found = drained(2, GONE)
    assert (found.left, found.waited) == (0, True)


def test_an_engine_that_is_too_slow_to_tell_may_still_be_busy() -> None:
    found = drained(1, SLOW, 0, SLOW, 0, 0, drain=60)
    assert (found.left, found.waited) == (0, True)
    assert found.seconds > 10


def test_one_that_never_tells_is_left_when_the_time_is_over() -> None:
    found = drained(SLOW, drain=8)
    assert (found.left, found.summary) == (None, "")
    assert found.seconds <= 8 + 2 * POLL_SECONDS


def test_metrics_of_something_else_end_the_waiting_at_once() -> None:
    assert drained('{"detail": "Not Found"}') == Drained(left=None)


def test_a_signal_ends_the_waiting() -> None:
    found = drained(1, signal=1)
    assert (found.left, found.seconds) == (1, 1)


def test_all_workloads_have_the_same_time_and_what_they_have_left_is_added_up() -> None:
    found = drained(1, drain=5, workloads=TWO)
    assert (found.left, found.seconds) == (2, 5)


@pytest.mark.parametrize(
    ("how", "workloads"),
    [
        (Ending(busy=None, drain_seconds=10, grace_seconds=1), ONE),
        (Ending(busy=IN_FLIGHT, drain_seconds=0, grace_seconds=1), ONE),
        (Ending(busy=IN_FLIGHT, drain_seconds=10, grace_seconds=1), ()),
    ],
)
def test_where_there_is_nothing_to_wait_for_nobody_is_asked(
    how: Ending, workloads: tuple[Workload, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(url: str, timeout: float, api_key: str) -> str:
        raise AssertionError(url, timeout, api_key)

    monkeypatch.setattr(stopping, "read_metrics", never)
    assert until_idle(workloads, how, Clock().wait) == Drained()


@pytest.mark.parametrize(
    ("counts", "found"),
    [
        ([0], Drained()),
        ([2, 1, 0], Drained(seconds=0.5, waited=True, left=0)),
        ([1], Drained(seconds=2.0, waited=True, left=1)),
    ],
    ids=["idle", "ends", "time is up"],
)
def test_a_release_stops_once_no_gateway_has_a_request_on_it(
    counts: list[int], found: Drained, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, left = Clock(), iter(counts)
    gateways = SimpleNamespace(draining=lambda _: next(left, counts[-1]))
    monkeypatch.setattr(stopping, "ledger", lambda: SimpleNamespace(gateways=gateways))
    monkeypatch.setattr(stopping, "time", SimpleNamespace(monotonic=clock))
    assert until_gateways_idle("tiny.v1", 2, clock.wait) == found


def test_whoever_listens_hears_once_that_an_engine_is_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    notes = list[str]()
    monkeypatch.setattr(stopping, "tell", notes.append)
    drained(SLOW, drain=20)
    (note,) = notes
    assert note.startswith(f"{ONE[0].name} does not answer")


@pytest.mark.usefixtures("own_home")
def test_when_a_host_is_away_the_run_says_that_its_release_stays_stopping(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def stop(*_: object) -> None:
        raise Failure(Cause.RUNTIME_UNAVAILABLE, "gpu-1 does not answer")

    notes = list[str]()
    monkeypatch.setattr(stopping, "tell", notes.append)
    monkeypatch.setattr(stopping, "stop_all", stop)
    row = ledger().releases.get(ledger().releases.begin(a_spec(), REVISION, ""))
    with pytest.raises(Failure, match="gpu-1"):
        end_drained(row, ReleaseState.STOPPED, "retired")
    assert ledger().releases.get(row.id).state != ReleaseState.STOPPED
    (note,) = notes
    assert f"{row.id} stays `stopping`" in note
    assert "moorage reconcile" in note
