"""Undo what a deploy fetched: models and images that no release needs.

By default they stay, for the next deploy goes on where this one ended. Where disks are small,
`MOORAGE_KEEP_FETCHED=false` has them removed when the deploy fails.
"""

from __future__ import annotations

from dataclasses import dataclass

from moorage.adapters.docker.images import DockerImages
from moorage.adapters.transfer.store_cleanup import Store, prune, stores_of
from moorage.inventory.fleet import Fleet
from moorage.inventory.model_store import folder_name
from moorage.operations.stored_models import Need, Stored, StoredState, needs
from moorage.placement.placement import Placed
from moorage.releases.states import SERVING, UNFINISHED
from moorage.spec.image_reference import familiar, parse_reference
from tasks.context import ledger, settings
from tasks.image import image_hosts, wanted_image

Shelved = tuple[str, str]
"""Folder of a source, and a revision."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """What the hosts of a deploy had before it fetched anything.

    Attributes:
        wanted: The models that it may fetch.
        stores: Where to.
        complete: What was there, complete: host and place of each.
        image: Name of its image, without registry and folders; empty = it needs none.
        images: What each daemon had: references and digests, by address.
    """

    wanted: frozenset[Shelved]
    stores: tuple[Store, ...]
    complete: frozenset[tuple[str, Shelved]]
    image: str
    images: dict[str, frozenset[str]]

    def remove(self) -> None:
        """Undo of fetching: what was not there before is removed, where no release needs it.

        Nothing happens when it is gone, or was never fetched.

        Raises:
            Failure: When a host does not answer.
        """
        for store in self.stores:
            going = [one for one in store.stored(_needs()) if self._is_ours(one)]
            if going:
                prune(store, going, _needs)
        if ledger().releases.unfinished():
            return  # another deploy may be about to start what it found
        for address, before in self.images.items():
            images = DockerImages(address)
            for name in sorted(images.names() - before):
                if _last_part(name) == self.image:
                    images.remove(name)

    def _is_ours(self, stored: Stored) -> bool:
        place = _place(stored)
        before = (stored.host, place) in self.complete
        return place in self.wanted and not before and not stored.used_by


def before_fetching(found: Placed, fleet: Fleet) -> Fetched:
    """What the placed hosts have now.

    Raises:
        Failure: When one of them does not answer.
    """
    model, placement = found.model, found.placement
    placed = {seat.host for seat in placement.seats}
    stores = tuple(one for one in stores_of(fleet, settings()) if one.host in placed)
    stored = [one for store in stores for one in store.stored(())]
    image = wanted_image(found.spec, placement, found.snapshot)
    addresses = {host.address for host in image_hosts(placement, found.snapshot)}
    every = (model, *(companion.model for companion in model.companions))
    return Fetched(
        wanted=frozenset((folder_name(one.source), one.revision) for one in every),
        stores=stores,
        complete=frozenset(
            (one.host, _place(one)) for one in stored if one.state == StoredState.COMPLETE
        ),
        image=_last_part(image.reference) if image else "",
        images={address: DockerImages(address).names() for address in addresses},
    )


def _place(stored: Stored) -> Shelved:
    return stored.path.split("/")[1], stored.revision


def _last_part(name: str) -> str:
    return parse_reference(familiar(name)).path.rpartition("/")[2]


def _needs() -> tuple[Need, ...]:
    own = ledger().releases
    rows = own.in_states(SERVING | UNFINISHED)
    return needs(rows, own.specs(row.id for row in rows))
