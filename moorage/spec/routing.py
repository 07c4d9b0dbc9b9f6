"""How requests for a model are spread."""

from enum import StrEnum


class Routing(StrEnum):
    """How a gateway chooses among the replicas of a model."""

    LEAST_REQUEST = "least-request"
    PREFIX_AWARE = "prefix-aware"
