"""What gateways follow: their rows, the epoch, and the keys of callers."""

from __future__ import annotations

import random
from contextlib import closing
from datetime import UTC, datetime

import pytest

from moorage.adapters.ledger import Ledger
from moorage.common.failures import Cause, Failure
from moorage.gateway.gateway import Gateway, GatewayOptions, LogPosition, last_use
from moorage.gateway.table import ApiKey
from moorage.gateway.usage import Usage
from tests.adapters.ledger.team import PROCESSES, Team
from tests.adapters.ledger.test_routes import started, switch

MAIN = Gateway(name="main", machine="box", options=GatewayOptions(port=4100))
KEY = ApiKey(
    name="ann",
    digest="a" * 64,
    models=("tiny",),
    created_at=datetime(2026, 11, 1, tzinfo=UTC),
    expires=datetime(2026, 12, 1, tzinfo=UTC),
)


def test_a_gateway_is_read_as_it_was_written(ledger: Ledger) -> None:
    ledger.gateways.put(MAIN)
    assert ledger.gateways.get("main") == MAIN
    ledger.gateways.drop("main")
    assert ledger.gateways.all() == ()


def test_the_epoch_grows_with_a_switch_but_not_with_a_report(ledger: Ledger) -> None:
    ledger.gateways.put(MAIN)
    identity = started(ledger)
    before = ledger.gateways.epoch()
    switch(ledger, identity)
    after = ledger.gateways.epoch()
    assert after > before
    ledger.gateways.report("main", after, {"tiny.v1": 2}, "")
    last_request = datetime(2026, 11, 23, 12, tzinfo=UTC)
    ledger.gateways.report_use("main", {"tiny.v2": last_request})
    assert last_use(ledger.gateways.all(), "tiny.v2") == last_request
    assert last_use(ledger.gateways.all(), "tiny.v1") is None
    assert ledger.gateways.epoch() == after
    found = ledger.gateways.get("main")
    assert found
    assert (found.epoch, ledger.gateways.draining("tiny.v1")) == (after, 2)
    assert ledger.gateways.draining("tiny.v2") == 0


def test_a_key_is_known_until_it_is_revoked(ledger: Ledger) -> None:
    ledger.api_keys.add(KEY)
    assert ledger.api_keys.all() == (KEY,)
    assert ledger.api_keys.revoke("ann")
    assert ledger.api_keys.all() == ()
    assert not ledger.api_keys.revoke("ann")


def test_a_name_stands_for_one_key(ledger: Ledger) -> None:
    ledger.api_keys.add(KEY)
    with pytest.raises(Failure, match="there is a key 'ann'") as caught:
        ledger.api_keys.add(KEY.model_copy(update={"digest": "b" * 64}))
    assert caught.value.cause == Cause.BAD_SETTING
    assert ledger.api_keys.all() == (KEY,)


def test_usage_is_added_up_and_the_log_is_counted_in_the_same_step(ledger: Ledger) -> None:
    ledger.gateways.put(MAIN)
    used = Usage(caller="ann", model="tiny", day="2026-11-23", requests=2, prompt_tokens=9)
    other = used.model_copy(update={"day": "2026-11-22"})
    position = LogPosition(inode=7, offset=100)
    ledger.usage.add("main", [used], LogPosition(inode=7, offset=50))
    ledger.usage.add("main", [used, other], position)
    twice = used.model_copy(update={"requests": 4, "prompt_tokens": 18})
    assert ledger.usage.since("2026-11-01") == (twice, other)
    assert ledger.usage.since("2026-11-23") == (twice,)
    found = ledger.gateways.get("main")
    assert found
    assert found.counted == position


CALLERS, ROUNDS = 40, 15


def count_along(number: int, url: str) -> None:
    """Count one request of each caller, in an order of its own, several times."""
    callers = [f"caller-{one:02}" for one in range(CALLERS)]
    random.Random(number).shuffle(callers)
    used = [Usage(caller=one, model="tiny", day="2026-11-23", requests=1) for one in callers]
    with closing(Ledger(url)) as ledger:
        for offset in range(ROUNDS):
            ledger.usage.add(f"gateway-{number}", used, LogPosition(inode=7, offset=offset))


def test_gateways_that_count_at_once_lose_nothing_and_do_not_wait_for_each_other(
    url: str, team: Team
) -> None:
    with closing(Ledger(url)) as ledger:
        for number in range(PROCESSES):
            ledger.gateways.put(MAIN.model_copy(update={"name": f"gateway-{number}"}))
        team(count_along, url)
        found = {one.caller: one.requests for one in ledger.usage.since("2026-11-23")}
    assert (len(found), set(found.values())) == (CALLERS, {PROCESSES * ROUNDS})


def test_other_options_count_no_request_twice_and_forget_a_problem(ledger: Ledger) -> None:
    ledger.gateways.put(MAIN)
    ledger.gateways.report("main", 7, {}, "the port is taken")
    position = LogPosition(inode=7, offset=100)
    ledger.usage.add("main", [], position)
    before = ledger.gateways.epoch()
    ledger.gateways.change("main", GatewayOptions(port=4200))
    found = ledger.gateways.get("main")
    assert found
    assert (found.options.port, found.counted, found.problem) == (4200, position, "")
    assert ledger.gateways.epoch() > before
