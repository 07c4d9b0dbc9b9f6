"""Gateways of this machine, as reconciling finds them."""

from moorage.adapters.gateway.followed_routes import revive_services
from tasks.context import ledger, settings
from tasks.journal import tell


def revive_gateways() -> None:
    """Start the services of gateways that do not run; each then repairs its own Envoy."""
    for name in revive_services(ledger(), settings().root):
        tell(f"the service of gateway {name} had ended and is started again")
