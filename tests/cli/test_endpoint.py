"""`moorage endpoint`: for scripts, one URL a line, or an error while nobody serves."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from moorage.adapters.ledger import Ledger
from moorage.cli.app import app
from moorage.cli.endpoint import _way_to
from moorage.cli.output import WIDE, out
from moorage.common.failures import ExitCode, Failure
from moorage.gateway.gateway import Gateway, GatewayOptions
from moorage.releases.release_row import ASLEEP, STOPPED_FIRST, SUPERSEDED
from moorage.releases.states import ReleaseState as S
from tests.adapters.ledger.test_routes import started, switch
from tests.adapters.ledger.test_sleep import asleep

HERE = platform.node()


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    monkeypatch.setattr(out, "_width", WIDE)
    monkeypatch.setenv("MOORAGE_HOME", str(tmp_path))
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        yield ledger


def endpoint(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["endpoint", *arguments])
    assert result.exit_code == code, result.output
    return result


def test_each_replica_is_a_line_that_an_openai_client_takes(ledger: Ledger) -> None:
    switch(ledger, started(ledger, replicas=2))
    assert endpoint("tiny").output == "http://gpu-1:40000/v1\nhttp://gpu-1:40001/v1\n"
    entry = json.loads(endpoint("tiny", "--json").output)
    assert (entry["id"], entry["release"]) == ("tiny", "tiny.v1")
    assert entry["endpoints"] == ["http://gpu-1:40000/v1", "http://gpu-1:40001/v1"]


def test_all_models_are_listed(ledger: Ledger) -> None:
    assert "No model is running." in endpoint("--all").output
    switch(ledger, started(ledger))
    assert "http://gpu-1:40000/v1" in endpoint("--all").output
    listing = json.loads(endpoint("--all", "--json").output)
    assert (listing["object"], [one["id"] for one in listing["data"]]) == ("list", ["tiny"])


@pytest.mark.usefixtures("ledger")
@pytest.mark.parametrize(
    ("arguments", "cause"),
    [(("tiny",), "unknown-release"), ((), "bad-setting"), (("tiny", "--all"), "bad-setting")],
)
def test_nothing_to_send_requests_to_is_an_error(arguments: tuple[str, ...], cause: str) -> None:
    result = endpoint(*arguments, "--json", code=ExitCode.BAD_INPUT)
    assert json.loads(result.output)["error"]["cause"] == cause


def test_a_name_that_nobody_serves_is_told_with_the_nearest_that_somebody_does(
    ledger: Ledger,
) -> None:
    switch(ledger, started(ledger))
    error = json.loads(endpoint("tinny", "--json", code=ExitCode.BAD_INPUT).output)["error"]
    assert "Did you mean 'tiny'?" in error["suggestion"]


def test_it_starts_without_prefect(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from moorage.cli.app import app\n"
        "app(['endpoint', '--all', '--json'], standalone_mode=False)\n"
        "sys.exit('prefect' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"MOORAGE_HOME": str(tmp_path), "PATH": "", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"object": "list", "data": []}


def test_a_gateway_stands_for_the_replicas_unless_they_are_wanted(ledger: Ledger) -> None:
    switch(ledger, started(ledger))
    ledger.gateways.put(Gateway(name="main", machine=HERE, epoch=3))
    assert endpoint("tiny").output == "http://127.0.0.1:4000/v1\n"
    assert endpoint("tiny", "--direct").output == "http://gpu-1:40000/v1\n"
    assert json.loads(endpoint("tiny", "--json").output)["gateways"] == ["http://127.0.0.1:4000/v1"]
    ledger.gateways.report("main", 4, {}, "the port is taken")
    assert endpoint("tiny").output == "http://gpu-1:40000/v1\n"


def test_a_gateway_of_another_machine_is_named_if_this_one_reaches_it(ledger: Ledger) -> None:
    switch(ledger, started(ledger))
    far = Gateway(name="far", machine="box", epoch=3)
    ledger.gateways.put(far)
    assert endpoint("tiny").output == "http://gpu-1:40000/v1\n"
    assert _way_to("tiny", "sk-mine")[1:] == ("http://gpu-1:40000", "sk-mine")
    ledger.gateways.put(far.model_copy(update={"options": GatewayOptions(bind="0.0.0.0")}))
    assert endpoint("tiny").output == "http://box:4000/v1\n"
    assert _way_to("tiny", "sk-mine")[1:] == ("http://box:4000", "sk-mine")


def test_a_model_that_sleeps_answers_through_the_gateway_only(ledger: Ledger) -> None:
    asleep(ledger)
    ledger.gateways.put(Gateway(name="far", machine=f"not-{HERE}", epoch=3))
    assert "`moorage load tiny` wakes it" in endpoint("tiny", code=ExitCode.BAD_INPUT).output
    ledger.gateways.put(Gateway(name="main", machine=HERE, epoch=3))
    assert endpoint("tiny").output == "http://127.0.0.1:4000/v1\n"
    assert json.loads(endpoint("tiny", "--json").output)["state"] == "asleep"


def put_to_sleep(ledger: Ledger) -> None:
    ledger.releases.move("tiny.v1", S.STOPPING, f"{ASLEEP}: no request for 5 min")


def wake(ledger: Ledger) -> None:
    put_to_sleep(ledger)
    ledger.releases.move("tiny.v1", S.ASLEEP, ASLEEP)
    ledger.releases.move("tiny.v1", S.WAKING)


def stop_first(ledger: Ledger) -> None:
    cause = f"{SUPERSEDED} tiny.v2, {STOPPED_FIRST}"
    ledger.releases.move("tiny.v1", S.STOPPING, cause)
    started(ledger)


@pytest.mark.parametrize(
    ("change", "state"), [(put_to_sleep, "stopping"), (wake, "waking"), (stop_first, "starting")]
)
def test_a_chat_goes_to_the_gateway_that_holds_it(
    ledger: Ledger, change: Callable[[Ledger], None], state: str
) -> None:
    switch(ledger, started(ledger))
    change(ledger)
    with pytest.raises(Failure, match=f"tiny is {state}") as refused:
        _way_to("tiny", "")
    assert "moorage status" in refused.value.suggestion
    ledger.gateways.put(Gateway(name="main", machine=HERE, epoch=3))
    row, url, _ = _way_to("tiny", "")
    assert (row.id, url) == ("tiny.v1", "http://127.0.0.1:4000")
