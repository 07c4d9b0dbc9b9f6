"""Jobs run side by side; whoever watches may end them."""

from __future__ import annotations

import threading
import time
from threading import Event

import pytest

from moorage.adapters.system import parallel
from moorage.adapters.system.parallel import deadline, map_parallel, run_all
from moorage.common.failures import Cause, Failure
from tests.waiting import PATIENCE_SECONDS


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "TICK_SECONDS", 0.01)


def nothing() -> None: ...


def test_results_come_in_the_order_of_the_jobs() -> None:
    second_ran = Event()

    def first(_: Event) -> int:
        assert second_ran.wait(60)
        return 1

    def second(_: Event) -> int:
        second_ran.set()
        return 2

    assert run_all([first, second], workers=2) == [1, 2]


def test_never_more_at_once_than_workers() -> None:
    running, most, lock = 0, 0, threading.Lock()

    def job(_: Event) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        Event().wait(0.005)
        with lock:
            running -= 1

    run_all([job] * 12, workers=3)
    assert most == 3


def test_the_first_failure_ends_the_others() -> None:
    ended = Event()

    def patient(stopped: Event) -> None:
        if stopped.wait(5):
            ended.set()

    def failing(_: Event) -> None:
        raise OSError("broken")

    with pytest.raises(OSError, match="broken"):
        run_all([patient, failing, patient], workers=2)
    assert ended.is_set()


def test_a_job_does_not_keep_the_process_alive() -> None:
    job = [lambda _stopped: threading.current_thread().daemon]
    assert run_all(job, workers=1) == [True], "a cancelled download would delay the exit"


def test_a_tick_ends_everything_once_the_time_is_over() -> None:
    deadline(None, "waiting")()  # which never raises
    with pytest.raises(Failure, match=r"waiting took over 0\.02 s") as caught:
        run_all([lambda stopped: stopped.wait(5)], workers=1, tick=deadline(0.02, "waiting"))
    assert caught.value.cause is Cause.DOWNLOAD_TIMEOUT


def test_a_job_that_does_not_stop_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moorage.adapters.system.parallel.STOP_SECONDS", 0.05)
    release, began = Event(), time.monotonic()
    deaf = [lambda _stopped: release.wait(5)] * 3
    with pytest.raises(Failure, match="waiting took over"):
        run_all(deaf, workers=3, tick=deadline(0.02, "waiting"))
    assert time.monotonic() - began < 3
    release.set()


def test_quick_answers_of_many_items_need_few_threads() -> None:
    threads = set()

    def work(item: int) -> int:
        threads.add(threading.get_ident())
        return item * item

    assert map_parallel(work, range(2000), 60) == [item * item for item in range(2000)]
    assert len(threads) < 200


def test_items_that_wait_hold_up_no_others() -> None:
    end, done = Event(), list[int]()

    def work(item: int) -> int:
        if item % 2:
            assert end.wait(PATIENCE_SECONDS)
        return item

    def on_done() -> None:
        done.append(1)
        if len(done) == 100:  # every other item
            end.set()

    assert map_parallel(work, range(200), PATIENCE_SECONDS, on_done) == list(range(200))


def test_an_item_that_fails_has_its_error() -> None:
    (one, other) = map_parallel(lambda item: 1 // item, [0, 1], 60)
    assert isinstance(one, ZeroDivisionError)
    assert other == 1
