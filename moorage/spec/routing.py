"""The setting of how requests are distributed over a model's replicas."""

from enum import StrEnum


class Routing(StrEnum):
    """How a gateway chooses among the replicas of a model."""

    LEAST_REQUEST = "least-request"
    PREFIX_AWARE = "prefix-aware"
