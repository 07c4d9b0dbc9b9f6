"""Where the placement, the image and the plan of a release come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from moorage.engines.launch import LaunchPlan
from moorage.images.image import Image
from moorage.inventory.fleet import Fleet
from moorage.inventory.snapshot import FleetSnapshot
from moorage.placement.placed import Analyzed, Placed
from moorage.releases.release import Release
from moorage.spec import ModelSpec
from tasks.image import pull
from tasks.place import place
from tasks.plan import check_placed, planned
from tasks.replay_release import have_same_image, place_where_it_was, planned_again


class Recipe(Protocol):
    """What a release is made of; the deploy flow does the rest."""

    @property
    def spec(self) -> ModelSpec:
        """What was asked for."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """Fields of the record that say where the release came from."""

    async def place(
        self,
        analyzed: Analyzed,
        fleet: Fleet,
        snapshot: FleetSnapshot,
        release: str,
        running: str,
    ) -> Placed:
        """Choose where it runs and claim it."""

    async def check(self, placed: Placed) -> tuple[str, ...]:
        """Check its arguments before anything is pulled; what a person should know."""

    async def have_image(self, placed: Placed) -> Image | None:
        """Have its image on every placed host; None = the engine is installed there."""

    def planned(self, placed: Placed, image: Image | None, notes: tuple[str, ...]) -> LaunchPlan:
        """Exactly what will run."""


@dataclass(frozen=True, slots=True)
class Afresh:
    """A spec, worked out anew."""

    spec: ModelSpec
    facts: Mapping[str, Any]

    async def place(
        self,
        analyzed: Analyzed,
        fleet: Fleet,
        snapshot: FleetSnapshot,
        release: str,
        running: str,
    ) -> Placed:
        """Where it fits best now."""
        return await place(analyzed, fleet, snapshot, release, running)

    async def check(self, placed: Placed) -> tuple[str, ...]:
        """For the version that will run."""
        return await check_placed(placed)

    async def have_image(self, placed: Placed) -> Image | None:
        """The one that the spec, the fleet or the catalogue names."""
        return await pull(placed.spec, placed.placement, placed.snapshot)

    def planned(self, placed: Placed, image: Image | None, notes: tuple[str, ...]) -> LaunchPlan:
        """By the rules of today."""
        return planned(placed, image, notes)


@dataclass(frozen=True, slots=True)
class Again:
    """An earlier release as it ran: its place, its image by digest, its plan.

    Attributes:
        target: The release; it ran, so that it has all of them.
        facts: Fields of the new record.
    """

    target: Release
    facts: Mapping[str, Any]

    @property
    def spec(self) -> ModelSpec:
        """What was asked for then."""
        return self.target.spec

    async def place(
        self,
        analyzed: Analyzed,
        fleet: Fleet,
        snapshot: FleetSnapshot,
        release: str,
        running: str,
    ) -> Placed:
        """Where it was, unless that is taken or gone."""
        return await place_where_it_was(self.target, analyzed, fleet, snapshot, release, running)

    async def check(self, placed: Placed) -> tuple[str, ...]:  # noqa: ARG002
        """Nothing: the very same arguments were taken by the very same image."""
        return ()

    async def have_image(self, placed: Placed) -> Image | None:
        """By its digest, or the image that was built on the host."""
        return await have_same_image(self.target, placed.placement, placed.snapshot)

    def planned(self, placed: Placed, image: Image | None, notes: tuple[str, ...]) -> LaunchPlan:
        """As it was recorded; only what the place demands is otherwise."""
        return planned_again(self.target, placed, image, notes)
