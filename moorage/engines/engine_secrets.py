"""The secrets that the engines of a plan ask for: their API key, where they require one."""

from moorage.engines.api_key import key_secret
from moorage.engines.launch import LaunchPlan
from moorage.engines.registry import ENGINES


def engine_secret(plan: LaunchPlan) -> str:
    """Name of the secret with the API key of a plan's engines; empty = they require none."""
    return key_secret(plan, ENGINES[plan.engine].api_key_variable)


def metrics_secret(plan: LaunchPlan) -> str:
    """Name of the secret with the API key of their metrics; empty = these require none."""
    busy = ENGINES[plan.engine].busy
    return engine_secret(plan) if busy and busy.guarded else ""
