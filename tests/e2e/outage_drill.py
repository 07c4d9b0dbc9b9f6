"""A server that a deploy needs is killed at a step, and reconciling once makes all good."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable

from moorage.common.failures import ExitCode
from tests.e2e.drill import Caller, Drill

STEPS = (
    *("release begun", "derive", "after the claim", "stage"),
    *("verify", "before the record", "old one drained"),
)
"""Points of `interrupted.POINTS` at which a server is killed: one in each state of a release.

Between two changes of the ledger a deploy has nothing else to lose.
"""


def an_outage(
    drill: Drill, what: str, step: str, victim: int, again: Callable[[], None]
) -> tuple[str, ...]:
    """Kill a server at a step of a deploy, start it again once that has ended, reconcile once.

    Args:
        drill: Where.
        what: The server, in words.
        step: The point.
        victim: Its process number.
        again: Starts it again.

    Returns:
        A row of the table: the deploy has failed or went on, nothing is lost, and nothing left.
    """
    old, spec = drill.deployed(), drill.spec()
    with Caller(old) as caller:
        ended = drill.place.run("deploy", spec, "--json", code=None, point=step, victim=victim)
        again()
        with Caller(drill.serving()) as now:
            done = drill.reconcile()
    assert not now.refused, now.refused[:3]
    answered, new = drill.answered(caller, old), drill.serving().id != old.id
    left = drill.leaks_nothing(drill.serving())
    repeated = drill.repeated(spec, new=new, recovery=f"{how_it_ended(ended)}: {done}")
    drill.leaks_nothing(drill.serving())
    return what, step, how_it_ended(ended), done, left, answered, repeated


def how_it_ended(command: subprocess.CompletedProcess[str]) -> str:
    """The cause of a failure; a deploy may not end in any other way than with one, or well."""
    answer = json.loads(command.stdout)
    assert "error" in answer or command.returncode == 0, command.stderr
    assert command.returncode != ExitCode.INTERNAL, answer
    return str(answer["error"]["cause"] if "error" in answer else answer["outcome"])
