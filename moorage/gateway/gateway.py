"""A gateway: its options, and how far it follows the ledger."""

import ipaddress
from collections.abc import Iterable
from datetime import datetime
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from moorage.common.values import InputValue, Value
from moorage.inventory.access import LOOPBACK, is_loopback
from moorage.spec import Name, SecretName


class GatewayHost(InputValue):
    """A host of the fleet on which Envoy runs."""

    name: Name = Field(description="Its name in the fleet.")
    address: str = Field(description="How its Docker is reached, as `Access.url`.")
    bind: str = Field(description="Its address for others.")
    helper_image: str = Field(description="Image in which the files of Envoy are written.")


class GatewayOptions(InputValue):
    """How a gateway listens."""

    bind: str = Field(
        "127.0.0.1",
        description="Address on which it listens. `0.0.0.0` stands for all of its machine.",
    )
    port: int = Field(4000, ge=1, le=65_535, description="Port on which it listens.")
    open_access: bool = Field(
        False, description="Whether callers of other machines need no API key."
    )
    tls_certificate: str = Field(
        "", description="File of a certificate chain in PEM. Empty = plain HTTP."
    )
    tls_key: str = Field("", description="File of its private key in PEM.")
    tls_secret: SecretName | Literal[""] = Field(
        "", description="Name of a secret with both in PEM, instead of their files."
    )
    max_body_bytes: int = Field(
        50 * 2**20, ge=2**16, le=2**31 - 1, description="Largest body of a request in bytes."
    )
    image: str = Field(
        "", description="Image of Envoy, by digest or local id. Empty = Envoy runs as a process."
    )
    host: GatewayHost | None = Field(
        None, description="Host on which Envoy runs as a container. Empty = this machine."
    )
    fleet: str = Field("", description="Fleet file with which sleeping models are woken.")
    idle_seconds: int = Field(
        3600, ge=1, description="How long a stream may pause before it is ended, in seconds."
    )

    @field_validator("bind")
    @classmethod
    def _check_bind(cls, bind: str) -> str:
        return str(ipaddress.ip_address(bind))

    @model_validator(mode="after")
    def _check_fields(self) -> Self:
        if bool(self.tls_certificate) != bool(self.tls_key):
            raise ValueError("a certificate and its key belong together: give both, or neither")
        if self.tls_certificate and self.tls_secret:
            raise ValueError("a certificate is in files or in a secret, not in both")
        if self.host and is_loopback(self.bind):
            raise ValueError(f"only {self.host.name} itself reaches {self.bind}")
        return self

    @property
    def is_exposed(self) -> bool:
        """Whether other machines can reach it."""
        return not is_loopback(self.bind)

    @property
    def fixed_properties(self) -> tuple[str, ...]:
        """Properties of Envoy's container that cannot change while it runs."""
        if self.host:
            return (self.image, self.host.name, self.host.address)
        return (self.image, self.tls_certificate, self.tls_key) if self.image else ()

    @property
    def is_encrypted(self) -> bool:
        """Whether it speaks HTTPS."""
        return bool(self.tls_certificate or self.tls_secret)

    @property
    def requires_key(self) -> bool:
        """Whether a request without a valid API key is refused."""
        return self.is_exposed and not self.open_access


class LogPosition(Value):
    """How far the access log is counted: inode of the file, and offset of the next line."""

    inode: int = 0
    offset: int = 0


class Gateway(Value):
    """A gateway of a ledger.

    Attributes:
        machine: Host name of the machine on which its service runs.
        epoch: The ledger's epoch that its routes match; 0 = it has not started yet.
        draining: Requests in flight by release, for releases that get no new requests.
        used: Time of the last request of each serving release, UTC, to within some seconds.
        problem: Why it does not follow the ledger; empty = it follows.
        counted: How far its access log is counted.
    """

    name: str
    machine: str
    options: GatewayOptions = GatewayOptions.defaults()
    epoch: int = 0
    draining: dict[str, int] = {}
    used: dict[str, datetime] = {}
    problem: str = ""
    counted: LogPosition = LogPosition.defaults()

    @property
    def url(self) -> str:
        """Base URL; a gateway on all interfaces gets its host's address or the loopback's."""
        host = self.options.bind
        if host in LOOPBACK:
            host = self.options.host.bind if self.options.host else LOOPBACK[host]
        return self._url(host)

    def url_from(self, machine: str) -> str | None:
        """Base URL for programs on a machine; None = only its own machine reaches the gateway."""
        if machine == self.machine or self.options.host:
            return self.url
        if not self.options.is_exposed:
            return None
        return self._url(self.machine) if self.options.bind in LOOPBACK else self.url

    def _url(self, host: str) -> str:
        scheme = "https" if self.options.is_encrypted else "http"
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{self.options.port}"


def last_use(gateways: Iterable[Gateway], release: str) -> datetime | None:
    """Time of a release's last request through any gateway, UTC; None = unknown."""
    return max((one.used[release] for one in gateways if release in one.used), default=None)
