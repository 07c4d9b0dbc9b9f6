"""The facts from which the launch of an engine on one seat is planned."""

from moorage.common.values import Value
from moorage.engines.schema.argument import Schema
from moorage.images.image import Image
from moorage.inventory.snapshot import HostSnapshot
from moorage.models.profile import ModelProfile
from moorage.models.source import ResolvedModel
from moorage.placement.placement import Seat
from moorage.spec import ModelSpec, NetworkMode, RuntimeName

MODELS_FOLDER = "/models"
"""Folder in containers that holds the model, in a folder of the model's name."""


class Peer(Value):
    """One host of a replica that spans several; the others reach it at its `bind`."""

    seat: Seat
    host: HostSnapshot


class LaunchRequest(Value):
    """The facts from which the launch of an engine on one seat is planned.

    Attributes:
        model: The model, with the paths of the host.
        image: The image; None for a process.
        caches: Directory on the host for caches; empty = no caches.
        arguments: The arguments of the version that runs, for an engine that needs their types.
        peers: Hosts of its replica, the leader's first; empty = one host.
    """

    spec: ModelSpec
    profile: ModelProfile
    model: ResolvedModel
    seat: Seat
    host: HostSnapshot
    release: str
    ledger: str
    image: Image | None = None
    caches: str = ""
    arguments: Schema | None = None
    peers: tuple[Peer, ...] = ()

    @property
    def spans_hosts(self) -> bool:
        """Whether its replica runs on several hosts."""
        return len(self.peers) > 1

    @property
    def leads(self) -> bool:
        """Whether this seat answers requests for its replica."""
        return self.seat.position == 0

    @property
    def in_container(self) -> bool:
        """Whether the engine runs in a container."""
        return self.seat.runtime == RuntimeName.DOCKER

    @property
    def user_variables(self) -> frozenset[str]:
        """Names of the variables that the user sets, secrets included."""
        return frozenset({*self.spec.engine.env, *self.spec.secrets})

    @property
    def listen_address(self) -> str:
        """Address on which the engine itself listens."""
        return "0.0.0.0" if self.publishes else self.host.bind

    @property
    def publishes(self) -> bool:
        """Whether the engine has its own network, with its port published on the host.

        Hosts of one replica connect on ports that are not known in advance, so they share the
        host's network.
        """
        alone = self.in_container and not self.spans_hosts
        return alone and self.spec.engine.container.network == NetworkMode.PUBLISHED

    @property
    def engine_model_path(self) -> str:
        """The model's directory as the engine sees it."""
        return f"{MODELS_FOLDER}/{self.spec.name}" if self.in_container else self.model.path
