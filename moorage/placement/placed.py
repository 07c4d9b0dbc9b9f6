"""What a flow knows of a model by and by: what it is, and where it goes."""

from __future__ import annotations

from dataclasses import dataclass

from moorage.inventory.snapshot import FleetSnapshot
from moorage.models.profile import ModelProfile
from moorage.models.source import ResolvedModel
from moorage.placement.placement import Placement
from moorage.spec import ModelSpec


@dataclass(frozen=True, slots=True)
class Analyzed:
    """A model that was found and looked at.

    Attributes:
        spec: What the user wrote.
        model: Its files, at exact revisions.
        profile: What it is.
    """

    spec: ModelSpec
    model: ResolvedModel
    profile: ModelProfile

    def placed(self, placement: Placement, snapshot: FleetSnapshot, release: str) -> Placed:
        """The same model with a place for one of its releases."""
        return Placed(self.spec, self.model, self.profile, placement, snapshot, release)


@dataclass(frozen=True, slots=True)
class Placed(Analyzed):
    """A model that has a place: all that a launch is planned from, but its image.

    Attributes:
        placement: Where it runs.
        snapshot: The fleet that it was placed on.
        release: Id of the release.
    """

    placement: Placement
    snapshot: FleetSnapshot
    release: str
