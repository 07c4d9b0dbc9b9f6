"""The model stores of a fleet: list their models and the models' users, and remove models."""

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from moorage.adapters.docker import sdk
from moorage.adapters.docker.client import connect, daemon_failures
from moorage.adapters.docker.connection import connection
from moorage.adapters.docker.helper_image import PULL_SECONDS
from moorage.adapters.docker.helper_job import PYTHON, FolderMissing, HelperJob, run_with
from moorage.adapters.hosts.remote_host import ask_daemon, helper_image_on
from moorage.adapters.system.file_locks import locked
from moorage.adapters.system.settings import Settings
from moorage.adapters.transfer import bundle
from moorage.adapters.transfer import store_program as keeper
from moorage.adapters.transfer.host_store import nonsense, staging_name
from moorage.common.failures import Failure
from moorage.common.strict_json import JsonError, decode
from moorage.engines.installed import CacheSize
from moorage.inventory.access import Access
from moorage.inventory.fleet import Fleet, Host
from moorage.inventory.survey.probe import STORE
from moorage.operations.stored_models import Need, Stored, StoredState

PROGRAM = bundle(keeper)
ASK_SECONDS = 20
WORK_SECONDS = 4 * 3600
"""Limit for actions that read a whole store; 10 TB at 1 GB/s take 3 hours."""

LISTING = {"list", "caches"}
"""Actions that change nothing."""

ANSWERS: dict[str, Any] = {
    "list": list[dict[str, Any]],
    "caches": list[dict[str, Any]],
    "verify": dict[str, list[str]],
    "hide": dict[str, str],
    "remove": dict[str, str],
}
"""Types of the answers to actions; all others answer with paths."""

OLDER_FIRST = "an older copy of it was removed first; prune again"
"""Why a model stays that was downloaded again after a killed call had hidden it."""

ENDED = {"exited", "dead", "removing"}
"""States of containers that no longer need their mounts; a paused container may continue."""


class Store(ABC):
    """The model store of a host or of this machine; `uses` tells whether a host uses it."""

    def __init__(self, host: str, uses: Callable[[str], bool]) -> None:
        self.host, self._uses = host, uses
        self._seen: list[dict[str, Any]] = []
        """Containers on the machine of the store; `stored` lists them."""

    def stored(self, needs: Sequence[Need]) -> tuple[Stored, ...]:
        """Models in the store with their users; raises `Failure` when the host does not answer."""
        listed = self.ask("list")
        with _understood(listed):
            found = [Stored.model_validate({**one, "host": self.host}) for one in listed]
        return tuple(
            one.model_copy(update={"used_by": tuple(self._users(one, needs))}) for one in found
        )

    def caches(self) -> tuple[CacheSize, ...]:
        """Caches that engines keep for their next start; raises `Failure` as `stored` does."""
        listed = self.ask("caches")
        with _understood(listed):
            return tuple(CacheSize.model_validate(one) for one in listed)

    @abstractmethod
    def ask(self, action: str, paths: Sequence[str] = ()) -> Any:
        """Run an action of the store program on the store."""

    @abstractmethod
    def _users(self, stored: Stored, needs: Sequence[Need]) -> Iterable[str]:
        """Names of the users of a stored model; empty = nobody needs it."""

    def _containers_in(self, place: str) -> Iterator[str]:
        """Containers that mount a directory or a part of it, and have not ended."""
        for container in self._seen:
            sources = [str(mount.get("Source", "")) for mount in container.get("Mounts", ())]
            inside = any(f"{source}/".startswith(f"{place}/") for source in sources)
            if inside and container["State"] not in ENDED:
                yield f"container {container['Names'][0].lstrip('/')}"


class OwnStore(Store):
    """The store of this machine, which all its hosts share.

    Args:
        elsewhere: Hosts and clusters that do not use it. All other names count as this machine:
            a release may run here under a name that the fleet no longer has.
        daemons: The daemons of this machine, whose containers may mount it.
    """

    def __init__(
        self,
        host: str,
        settings: Settings,
        elsewhere: Collection[str] = (),
        daemons: Sequence[Access] = (),
    ) -> None:
        super().__init__(host, lambda name: name not in elsewhere)
        self._root, self._daemons = str(settings.root), daemons
        self._sources: list[tuple[str, tuple[Path, ...]]] = []

    def ask(self, action: str, paths: Sequence[str] = ()) -> Any:
        """Run the action in this process."""
        return keeper.ACTIONS[action](self._root, list(paths))

    def stored(self, needs: Sequence[Need]) -> tuple[Stored, ...]:
        """Models and users as in any store; users include all containers on this machine."""
        self._seen = [one for access in self._daemons for one in _containers_here(access)]
        local = [need for need in needs if need.path]
        self._sources = [(need.release, tuple(_files_of(need.path))) for need in local]
        return super().stored(needs)

    def _users(self, stored: Stored, needs: Sequence[Need]) -> Iterable[str]:
        yield from (need.release for need in needs if need.concerns(stored, self._uses))
        whole = stored.path.removesuffix(keeper.GOING)
        place = Path(os.path.realpath(f"{self._root}/{whole}"))
        for release, paths in self._sources:
            if any(one.is_relative_to(place) or place.is_relative_to(one) for one in paths):
                yield release
        if self._is_locked(stored):
            yield "a download"
        yield from self._containers_in(str(place))

    def _is_locked(self, stored: Stored) -> bool:
        folder, repository, _ = stored.path.split("/")
        for purpose in ("weights", "metadata"):
            locks = Path(f"{self._root}/{folder}/{repository}/.locks")
            # An error = no lock was ever taken in this folder.
            with suppress(OSError), locked(locks / f"{stored.revision}.{purpose}", 0) as is_free:
                if not is_free:
                    return True
        return False


class RemoteStore(Store):
    """The store of a remote host."""

    def __init__(self, host: Host, fleet: Fleet) -> None:
        super().__init__(host.name, host.name.__eq__)
        self._host, self._fleet = host, fleet

    def ask(self, action: str, paths: Sequence[str] = ()) -> Any:
        """Run the action in a helper container."""
        access, fleet, writes = self._host.access, self._fleet, action not in LISTING
        with connection(access.url, ASK_SECONDS) as daemon:
            image = helper_image_on(daemon, self._host, fleet, ask_daemon(daemon), PULL_SECONDS)
            job = HelperJob(
                image,
                (*PYTHON, PROGRAM, action, STORE, json.dumps(paths)),
                purpose="keep",
                seconds=WORK_SECONDS if writes else ASK_SECONDS,
                folders={STORE: self._host.store},
                writes=writes,
            )
            try:
                output = run_with(daemon, access.machine, job)
            except FolderMissing:
                return []  # the directory does not exist yet: no model was staged
        line = output.strip().rpartition("\n")[2]
        with _understood(line):
            return TypeAdapter(ANSWERS.get(action, list[str])).validate_python(decode(line))

    def stored(self, needs: Sequence[Need]) -> tuple[Stored, ...]:
        """Models and users as in any store; users include all containers on the host."""
        with daemon_failures(self._host.access):
            self._seen = connect(self._host.access, ASK_SECONDS).api.containers(all=True)
        return super().stored(needs)

    def _users(self, stored: Stored, needs: Sequence[Need]) -> Iterable[str]:
        yield from (need.release for need in needs if need.concerns(stored, self._uses))
        whole = keeper.WORKSPACE.sub("", stored.path.removesuffix(keeper.GOING))
        place = f"{self._host.store.rstrip('/')}/{whole}"
        downloader = staging_name(place)
        if any(f"/{downloader}" in (container["Names"] or ()) for container in self._seen):
            yield "a download"
        yield from self._containers_in(place)


def _containers_here(access: Access) -> list[dict[str, Any]]:
    """The containers of a daemon of this machine; it may have none, or none for this user."""
    found: list[dict[str, Any]] = []
    with daemon_failures(access), suppress(sdk.ConnectionError, Failure):
        found = connect(access, ASK_SECONDS).api.containers(all=True)
    for mount in (mount for container in found for mount in container.get("Mounts", ())):
        if source := mount.get("Source"):
            mount["Source"] = os.path.realpath(source)
    return found


def _files_of(source: str) -> Iterator[Path]:
    """A local source, and what its links lead to."""
    path = os.path.expanduser(source)
    yield Path(os.path.realpath(path))
    with suppress(OSError), os.scandir(path) as entries:
        for entry in islice(entries, keeper.MOST_FILES):
            if entry.is_symlink():
                yield Path(os.path.realpath(entry.path))


@contextmanager
def _understood(answer: object) -> Iterator[None]:
    try:
        yield
    except (JsonError, ValidationError) as error:
        raise nonsense(str(answer)) from error


def stores_of(fleet: Fleet, settings: Settings) -> tuple[Store, ...]:
    """The stores of a fleet; this machine's store comes first."""
    here = [host for host in fleet.hosts if not host.access.is_remote] or [Host(name="local")]
    remote = [RemoteStore(host, fleet) for host in fleet.hosts if host.access.is_remote]
    elsewhere = {store.host for store in remote} | fleet.clusters.keys()
    daemons = [host.access for host in here]
    return (OwnStore(here[0].name, settings, elsewhere, daemons), *remote)


def prune(
    store: Store,
    going: Sequence[Stored],
    needs_now: Callable[[], Sequence[Need]],
    notify: Callable[[Stored, str], object] = lambda *_: None,
) -> tuple[Stored, ...]:
    """Remove models from a store, and return them; a model that is needed by now stays.

    Models are first hidden by renaming. A deploy that starts after that does not find its model and
    downloads it again; a deploy that started earlier appears in the second listing.

    A killed call may have left a hidden model that was downloaded again since. Then only the hidden
    one is removed.

    Args:
        notify: Called with each model that stays, and why.
    """
    hidden = {one.path: one for one in going if one.state == StoredState.GOING}
    whole = {one.path: one for one in going if one.state != StoredState.GOING}
    tried = dict[str, str](store.ask("hide", list(whole)))
    for path, one in whole.items():
        if why := tried.get(path):
            notify(one, OLDER_FIRST if path + keeper.GOING in hidden else why)
        elif path in tried:
            hidden[path + keeper.GOING] = one
    users = {one.path: one.used_by for one in store.stored(needs_now()) if one.used_by}
    kept = hidden.keys() & users.keys()
    store.ask("restore", sorted(kept))
    left = dict[str, str](store.ask("remove", sorted(hidden.keys() - kept)))
    stays = {path: f"{', '.join(users[path])} needs it by now" for path in kept} | left
    for path in stays.keys() & hidden.keys():
        notify(hidden[path], stays[path])
    return tuple(one for path, one in hidden.items() if path not in stays)
