"""The registries that images come from, and their logins."""

from typing import Annotated

from pydantic import Field, StringConstraints

from moorage.common.values import InputValue
from moorage.spec import SecretName
from moorage.spec.image_reference import parse_reference

ADDRESS = r"([A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9a-fA-F]*:[0-9a-fA-F:.]*\])(:\d{1,5})?"
REGISTRY_PATTERN = rf"^{ADDRESS}(/[a-z0-9][a-z0-9._-]*)*/?$"
HOST_PATTERN = rf"^{ADDRESS}$"
ACCOUNT_PATTERN = r"^[^\s:\x00]+$"
DOCKER_HUB = "docker.io"
HUB_NAMES = ("", DOCKER_HUB, "index.docker.io")
"""Docker Hub's names in a reference; the last is an older name that Docker still accepts."""

RegistryName = Annotated[str, StringConstraints(pattern=REGISTRY_PATTERN)]
RegistryHost = Annotated[str, StringConstraints(pattern=HOST_PATTERN)]


class RegistryLogin(InputValue):
    """The login of one registry."""

    registry: RegistryHost = Field(
        description="Host and port of the registry, such as `registry.example.com:5000`;"
        " `docker.io` for Docker Hub."
    )
    username: str = Field(pattern=ACCOUNT_PATTERN, description="Name of the account.")
    password: SecretName = Field(
        description="Name of the secret that holds its password or token (an environment variable"
        " of the deploying process, or a Prefect Secret block)."
    )


class Registries(InputValue):
    """Registries for images whose reference names none."""

    default: RegistryName | None = Field(
        None,
        description="Registry of images whose reference names none, such as `mirror.example.com`"
        " or `mirror.example.com/hub`. Empty = Docker Hub.",
    )
    fallback: RegistryName | None = Field(
        None, description="Registry of those images while the first one is down."
    )
    logins: tuple[RegistryLogin, ...] = Field(
        (),
        description="Logins of registries. moorage queries other registries without a login;"
        " Docker pulls from them with its own.",
    )
    insecure: tuple[RegistryHost, ...] = Field(
        (),
        description="Registries with plain HTTP or an untrusted certificate, as in the Docker"
        " daemon's `insecure-registries`. Registries on this machine need no entry.",
    )

    def places(self, reference: str) -> tuple[str, ...]:
        """The references to try, in order; one with an explicit registry is tried only there."""
        parsed = parse_reference(reference)
        names = (self.default or "", self.fallback or self.default or "")
        return tuple(dict.fromkeys(str(parsed.at(name)) for name in names))

    def login(self, reference: str) -> RegistryLogin | None:
        """The login for the registry of a reference."""
        host = _canonical(parse_reference(reference).registry)
        return next((login for login in self.logins if _canonical(login.registry) == host), None)


def _canonical(registry: str) -> str:
    return DOCKER_HUB if registry in HUB_NAMES else registry
