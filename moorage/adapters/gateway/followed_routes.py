"""Changes the ledger's routes, and waits for the gateways that follow them."""

import platform
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from moorage.adapters.gateway.processes import GatewayProcesses, gateway_lock, service_secrets
from moorage.adapters.ledger import Ledger
from moorage.common.failures import Failure
from moorage.engines.api_key import secrets_of
from moorage.gateway.gateway import Gateway
from moorage.releases.release import Release
from moorage.releases.routing import Canary
from moorage.releases.states import ReleaseState

FOLLOW_SECONDS = 10.0
"""How long a change waits for gateways; they need about 0.1 s, or 3 s if a service must start."""

POLL_SECONDS = 0.02


class FollowedRoutes:
    """The routes of the ledger; each change waits until every gateway has applied it.

    A gateway that does not follow in time does not block the change: it keeps its previous routes
    and follows as soon as it can.

    Args:
        notify: Called with a line about each gateway that does not follow.
    """

    def __init__(self, ledger: Ledger, home: Path, notify: Callable[[str], None]) -> None:
        self._ledger, self._home, self._notify = ledger, home, notify

    def switch(self, release: Release) -> Release:
        """Give a release its model name; the predecessor loses it in the same transaction."""
        recorded = self._ledger.releases.take_over(release)
        self._await_gateways(release)
        return recorded

    def close(self, release: str, cause: str) -> None:
        """Take the model name from a release."""
        self._ledger.releases.move(release, ReleaseState.STOPPING, cause)
        self._await_gateways()

    def reopen(self, release: str, cause: str) -> None:
        """Give the model name back to a release."""
        self._ledger.releases.move(release, ReleaseState.RUNNING, cause)
        self._await_gateways()

    def share(self, release: str, canary: Canary | None) -> None:
        """Send a share of the model's requests to a release that does not serve yet."""
        self._ledger.routes.share(release, canary)
        self._await_gateways()

    def _await_gateways(self, release: Release | None = None) -> None:
        """Wait for the gateways; a failure is only reported, since the change is already made."""
        try:
            for line in await_gateways(self._ledger, self._home):
                self._notify(line)
            for line in _other_variables(self._ledger, self._home, release) if release else ():
                self._notify(line)
        except Failure as failure:
            self._notify(f"the gateways may not follow: {failure}")


def await_gateways(ledger: Ledger, home: Path) -> list[str]:
    """Wait until all gateways have applied the ledger's current routes.

    Args:
        home: The home of moorage on this machine, whose gateway services are restarted if down.

    Returns:
        A line about each gateway that has not.
    """
    epoch, give_up = ledger.gateways.epoch(), time.monotonic() + FOLLOW_SECONDS
    revive_services(ledger, home)
    while behind := [one for one in ledger.gateways.all() if one.epoch < epoch or one.problem]:
        if time.monotonic() > give_up:
            return [_line(one) for one in behind]
        time.sleep(POLL_SECONDS)
    return []


def revive_services(ledger: Ledger, home: Path) -> list[str]:
    """Start the gateway services of this machine that do not run; return their gateways' names."""
    own = _own_gateways(ledger)
    holders = ledger.locks.holders([gateway_lock(one.name) for one in own])
    ended = [one for one in own if gateway_lock(one.name) not in holders]
    for one in ended:
        secrets = service_secrets(ledger, one.options)
        GatewayProcesses(home, one.name).start_service(secrets)
    return [one.name for one in ended]


def _own_gateways(ledger: Ledger) -> list[Gateway]:
    return [one for one in ledger.gateways.all() if one.machine == platform.node()]


def _other_variables(ledger: Ledger, home: Path, release: Release) -> Iterator[str]:
    """A line about each gateway service here without the variables of a release as they are here.

    It is not started again here, because that would end the streams that it forwards.
    """
    secrets = secrets_of(release.plan)
    for one in _own_gateways(ledger) if secrets else ():
        if names := GatewayProcesses(home, one.name).other_variables(secrets):
            yield (
                f"gateway {one.name} lacks the variable {', '.join(names)}, or has another value"
                f" than this process, with which it would reach or wake {release.model}:"
                f" `moorage gateway up --name {one.name}` hands it on"
            )


def _line(gateway: Gateway) -> str:
    why = gateway.problem or f"its service on {gateway.machine} does not answer"
    return f"gateway {gateway.name} does not follow: {why}"
