"""The service of a gateway: runs Envoy, and keeps its routes in step with the ledger.

It is the only writer of Envoy's configuration. Envoy outlives it: while the service is down, the
routes stay as they were, and the next service continues with the same Envoy.
"""

import logging
import signal
import sys
import threading
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from math import inf
from pathlib import Path

from moorage.adapters.gateway.access_log import AccessLog
from moorage.adapters.gateway.admin import Admin
from moorage.adapters.gateway.config_files import ConfigFiles
from moorage.adapters.gateway.doorman import Doorman
from moorage.adapters.gateway.doorman_server import DoormanServer
from moorage.adapters.gateway.envoy_folder import DOORMAN_SOCKET
from moorage.adapters.gateway.processes import GatewayProcesses, gateway_lock
from moorage.adapters.gateway.sleepers import Sleepers
from moorage.adapters.gateway.table_reader import TableReader
from moorage.adapters.ledger import Ledger
from moorage.adapters.secrets import redact
from moorage.adapters.system.settings import Settings
from moorage.common.failures import Cause, Failure
from moorage.common.units import human_seconds
from moorage.gateway.gateway import Gateway, GatewayOptions, LogPosition, last_use
from moorage.gateway.idleness import Idle, Idleness, Loaded, Traffic
from moorage.gateway.table import ModelRoute, RoutingTable
from moorage.gateway.usage import count

POLL_SECONDS = 0.1
"""How soon the service notices a change of the ledger or the exit of Envoy."""

START_SECONDS = 20.0
LOCK_SECONDS = 30.0
COUNT_SECONDS = 1.0
RENEWAL_SECONDS = 10.0
"""Pause after a renewed certificate could not be taken over."""

ABANDONED_SECONDS = 10.0
"""How long a gateway without a row waits for `gateway down` here, before it ends by itself."""

DRAIN_SECONDS = 30.0
USE_STEP = timedelta(seconds=10)
"""Precision with which the ledger knows the last request of a release."""

logger = logging.getLogger("moorage.gateway")


class GatewayService:
    """Runs one gateway and follows the ledger."""

    def __init__(self, ledger: Ledger, name: str, home: Path) -> None:
        self._ledger, self._name = ledger, name
        row = ledger.gateways.get(name)
        options = row.options if row else GatewayOptions()
        self._processes = GatewayProcesses(home, name, options)
        self._envoy, folder = self._processes.envoy, self._processes.folder
        self._files = ConfigFiles(folder, self._envoy.folder)
        self._reader = TableReader(ledger, self._envoy.folder)
        self._idleness = Idleness()
        self._idle: list[Idle] = []
        self._sleepers = Sleepers(ledger, home, lambda: self._idle, self._fleet)
        self._doorman = Doorman(self._sleepers.wake)
        self._doorman_server = DoormanServer(self._doorman, folder / DOORMAN_SOCKET)
        self._log = AccessLog(self._envoy.folder)
        self._used: dict[str, datetime] | None = None
        self._counted: LogPosition | None = None
        self._next_count = self._next_look = self._next_renewal = 0.0
        self._renewal_problem = ""
        self._usage_counts = False
        self._admin: Admin | None = None
        self._options: GatewayOptions | None = None
        self._table: RoutingTable | None = None
        self._reported = Gateway(name=name, machine="")
        self._dropped_at: float | None = None

    def run(self, ended: threading.Event) -> None:
        """Follow the ledger until `ended` is set; a lock makes this service the only writer.

        If another machine has removed the gateway, Envoy is stopped: it would serve callers whose
        keys are revoked.

        Raises:
            LockHeld: Another service of this gateway runs.
        """
        name = gateway_lock(self._name)
        with self._ledger.locks.holding(name, wait_seconds=LOCK_SECONDS, note="gateway service"):
            self._doorman_server.start()
            while not ended.is_set():
                self.step()
                if self._is_abandoned():
                    logger.warning("no gateway of this name is in the ledger: it ends")
                    self._processes.stop_envoy(DRAIN_SECONDS)
                    return
                ended.wait(POLL_SECONDS)

    def step(self) -> None:
        """Bring the gateway up to date; report a failure, and retry at the next step."""
        try:
            self._follow()
        except Failure as failure:
            self._next_look = time.monotonic() + self._envoy.folder.pause_seconds
            problem = redact(str(failure))
            if problem != self._reported.problem:
                logger.warning(problem)
            self._report(self._reported.epoch, self._reported.draining, problem)

    def _is_abandoned(self) -> bool:
        """Whether the ledger has had no row of this gateway for long."""
        at = self._dropped_at
        return at is not None and time.monotonic() - at >= ABANDONED_SECONDS

    def _follow(self) -> None:
        epoch = self._ledger.gateways.epoch()
        changed = epoch != self._reported.epoch or self._reported.problem or self._usage_counts
        waits = time.monotonic() < self._next_look
        if waits and (not changed or self._reported.problem):
            return
        self._keep_envoy()
        if changed:
            self._take_over()
        assert self._admin
        removed = self._reader.remove_key
        draining = self._files.prune(self._admin, removed) | self._passed_on()
        self._next_look = time.monotonic() + self._envoy.folder.pause_seconds
        if time.monotonic() >= self._next_count:
            self._next_count = time.monotonic() + COUNT_SECONDS
            self._count_usage(self._admin)
            self._send_to_sleep(self._admin)
            self._renew_certificate(self._admin)
        self._report(epoch, draining, self._renewal_problem)

    def _keep_envoy(self) -> None:
        """Start Envoy with its current files unless it runs."""
        if self._admin and self._envoy.runs():
            return
        options = self._wanted_options()
        if not self._files.are_there():
            self._files.forget()
            self._reader.forget()
        self._files.listen(options, None)
        if not self._files.tables():
            self._files.apply(RoutingTable(), None)
        self._envoy.start(self._files.bootstrap)
        self._admin = Admin(self._envoy.folder.admin())
        self._options, self._table = None, None
        give_up = time.monotonic() + START_SECONDS
        while not self._admin.is_ready() and time.monotonic() < give_up:
            self._envoy.require()
            time.sleep(POLL_SECONDS)

    def _take_over(self) -> None:
        options = self._wanted_options()
        if options != self._options:
            self._files.listen(options, self._admin)
            self._options = options
        table = self._reader.read(options)
        self._usage_counts = False
        if table != self._table:
            self._files.apply(table, self._admin)
            self._table = table

    def _renew_certificate(self, admin: Admin) -> None:
        """Take over a renewed certificate; until that succeeds, the former one stays in use."""
        if not self._options or time.monotonic() < self._next_renewal:
            return
        problem, self._renewal_problem = self._renewal_problem, ""
        try:
            self._files.renew_certificate(self._options, admin)
        except Failure as failure:
            self._next_renewal = time.monotonic() + RENEWAL_SECONDS
            self._renewal_problem = redact(str(failure))
            if self._renewal_problem != problem:
                logger.warning(self._renewal_problem)

    def _wanted_options(self) -> GatewayOptions:
        """The options that the ledger records for the gateway.

        Raises:
            Failure: The gateway is being taken down; it stays unchanged until then.
        """
        row = self._ledger.gateways.get(self._name)
        if row is None:
            self._dropped_at = self._dropped_at or time.monotonic()
            raise Failure(Cause.GATEWAY_REFUSED, f"gateway {self._name} is taken down")
        self._dropped_at = None
        # A change of options clears the recorded problem; if it persists, it is reported again.
        self._reported = self._reported.model_copy(update={"problem": row.problem})
        return row.options

    def _fleet(self) -> str:
        row = self._ledger.gateways.get(self._name)
        return row.options.fleet if row else ""

    def _count_usage(self, admin: Admin) -> None:
        """Count the usage that Envoy has logged since the last count."""
        if self._counted is None:
            row = self._ledger.gateways.get(self._name)
            self._counted = row.counted if row else LogPosition()
        # A log that grows faster than it is read holds up nothing else.
        give_up = time.monotonic() + COUNT_SECONDS
        while time.monotonic() < give_up:
            lines, position = self._log.read(self._counted)
            if position == self._counted:
                break
            self._ledger.usage.add(self._name, count(lines), position)
            self._counted = position
            self._usage_counts = bool(self._table and any(key.tokens for key in self._table.keys))
        self._log.rotate(admin, self._counted)

    def _send_to_sleep(self, admin: Admin) -> None:
        """Put models to sleep that had no request for their `keep_alive`.

        Without a doorman only the use is recorded: no request here would wake them, and another
        gateway that can wake them also puts them to sleep.
        """
        if self._table is None:
            return
        now, traffic, elsewhere = time.monotonic(), admin.traffic(), self._asked_elsewhere()
        loaded = [
            Loaded(
                model.name,
                backend.release,
                model.keep_alive,
                self._traffic(model, traffic),
                elsewhere.get(backend.release, inf),
            )
            for model in self._table.models
            for backend in model.backends[:1]  # a canary never sleeps
        ]
        self._idleness.observe(loaded, now)
        self._idle = self._idleness.idle(loaded, now)
        self._report_use({one.release for one in loaded}, now)
        for one in self._idleness.due(loaded, now) if self._envoy.folder.doorman else ():
            reason = f"no request for {human_seconds(one.seconds)}"
            self._doorman_server.submit(self._sleep(one.model, reason))

    def _asked_elsewhere(self) -> dict[str, float]:
        """Seconds since the last request of each release through other gateways, or fewer."""
        others = [one for one in self._ledger.gateways.all() if one.name != self._name]
        latest = datetime.now(UTC) - USE_STEP
        return {
            release: max(0.0, (latest - at).total_seconds())
            for release in {release for one in others for release in one.used}
            if (at := last_use(others, release))
        }

    def _report_use(self, releases: Iterable[str], now: float) -> None:
        """Record each release's last request here, unless the ledger knows it within `USE_STEP`.

        Times from other gateways are left out, or two gateways would keep a model awake forever.
        """
        if self._used is None:
            row = self._ledger.gateways.get(self._name)
            self._used = row.used if row else {}
        clock, since = datetime.now(UTC), self._idleness.since_last_request(now)
        found = {one: clock - timedelta(seconds=seconds) for one, seconds in since.items()}
        before, kept = self._used, set(releases)
        used = {one: at for one, at in {**before, **found}.items() if one in kept}
        known = used.keys() == before.keys()
        if not known or any(abs(at - before[one]) > USE_STEP for one, at in used.items()):
            self._ledger.gateways.report_use(self._name, used)
            self._used = used

    def _passed_on(self) -> dict[str, int]:
        """Requests that the doorman forwarded to releases that get no new requests."""
        serving = self._table.releases if self._table else frozenset()
        passing = self._doorman.passing.copy()
        return {release: n for release, n in passing.items() if n and release not in serving}

    def _traffic(self, model: ModelRoute, traffic: dict[str, Traffic]) -> Traffic:
        """Requests to a model, including those that the doorman forwards."""
        found = traffic.get(model.backends[0].release, Traffic())
        return found._replace(active=found.active + self._doorman.active[model.name])

    async def _sleep(self, model: str, reason: str) -> None:
        try:
            await self._sleepers.put_to_sleep(model, reason)
        except Failure as failure:
            logger.warning("%s does not sleep: %s", model, redact(str(failure)))

    def _report(self, epoch: int, draining: dict[str, int], problem: str) -> None:
        found = {"epoch": epoch, "draining": draining, "problem": problem}
        reported = self._reported.model_copy(update=found)
        if reported != self._reported:
            self._ledger.gateways.report(self._name, epoch, draining, problem)
            self._reported = reported


def main(name: str) -> None:
    """Run the service of a gateway until SIGTERM or SIGINT."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    for noisy in ("alembic", "httpx"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    settings = Settings()
    GatewayService(Ledger(settings.ledger), name, settings.root).run(ended)


if __name__ == "__main__":
    main(sys.argv[1])
