"""Docker's own client, which is imported on the first use of one of its names.

Importing it takes as long as the whole of `moorage status`, and who only looks never needs it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from docker import DockerClient as DockerClient
    from docker.constants import DEFAULT_DOCKER_API_VERSION as DEFAULT_DOCKER_API_VERSION
    from docker.errors import APIError as APIError
    from docker.errors import DockerException as DockerException
    from docker.errors import ImageNotFound as ImageNotFound
    from docker.errors import NotFound as NotFound
    from docker.models.containers import Container as Container
    from docker.tls import TLSConfig as TLSConfig
    from docker.types import DeviceRequest as DeviceRequest
    from docker.types import Mount as Mount
    from docker.types import Ulimit as Ulimit
    from requests.exceptions import ConnectionError as ConnectionError
    from requests.exceptions import RequestException as RequestException

    DAEMON_ERRORS: tuple[type[Exception], type[Exception]]
    """Errors for a daemon that is lost, or that refuses a request."""

_NAMES = {
    "docker": "DockerClient",
    "docker.constants": "DEFAULT_DOCKER_API_VERSION",
    "docker.errors": "APIError DockerException ImageNotFound NotFound",
    "docker.models.containers": "Container",
    "docker.tls": "TLSConfig",
    "docker.types": "DeviceRequest Mount Ulimit",
    "requests.exceptions": "ConnectionError RequestException",
}
"""Names by the module that has them."""

_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name == "DAEMON_ERRORS":
        found: Any = tuple(map(__getattr__, ("DockerException", "RequestException")))
    elif name in _MODULES:
        found = getattr(import_module(_MODULES[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found
