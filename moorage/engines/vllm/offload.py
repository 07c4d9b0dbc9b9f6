"""The extended KV cache: LMCache keeps blocks in RAM that leave the accelerator."""

from __future__ import annotations

from moorage.common.units import GIB
from moorage.common.values import Origin, Value
from moorage.engines.flags import Flag, Variable, spec_flag, variable

SEED = variable("PYTHONHASHSEED", "0", "all processes have to know a block by the same hash")
CONNECTOR = '{"kv_connector":"LMCacheConnectorV1","kv_role":"kv_both"}'
SUPPORTED = frozenset({"cuda", "rocm"})
"""Accelerator types for which LMCache is built."""


class ExtendedCache(Value):
    """The settings of the extended cache.

    Attributes:
        ram: Bytes of RAM on each host; None = by ratio.
        ratio: RAM as a share of the accelerator memory that is claimed there.
        chunk: Tokens of a chunk; None = LMCache's own.
    """

    ram: int | None = None
    ratio: float | None = None
    chunk: int | None = None

    def ram_on_host(self, claimed: int) -> int:
        """Bytes of RAM on a host.

        Args:
            claimed: Bytes of accelerator memory that the replica claims there.
        """
        return self.ram or int(claimed * (self.ratio or 0))


def offload_flags(cache: ExtendedCache | None, accelerator_type: str) -> tuple[Flag, ...]:
    """The connector, where it exists."""
    if cache is None or accelerator_type not in SUPPORTED:
        return ()
    return (spec_flag("extended_kv_cache", "--kv-transfer-config", CONNECTOR),)


def offload_variables(
    cache: ExtendedCache | None, accelerator_type: str, claimed: int, ranks: int = 1
) -> tuple[Variable, ...]:
    """Sizes that LMCache reads; none where it does not exist.

    Args:
        cache: The settings.
        accelerator_type: Of the seat.
        claimed: Bytes of accelerator memory that the replica claims on this host.
        ranks: Processes that have a cache there: each takes the whole size that LMCache gets
            (LMCache issue 2901), so each gets its part of the host's.
    """
    if cache is None or accelerator_type not in SUPPORTED:
        return ()
    values = {}
    if cache.chunk and cache.chunk > 0:
        values["LMCACHE_CHUNK_SIZE"] = (str(cache.chunk), "tokens of a chunk")
    part = f", for each of {ranks} ranks" if ranks > 1 else ""
    if cache.ram:
        size = _gib(cache.ram // ranks)
        values["LMCACHE_MAX_LOCAL_CPU_SIZE"] = (size, f"GiB of RAM, as stated{part}")
    elif cache.ratio and cache.ratio > 0:
        share = round(cache.ram_on_host(claimed) / ranks / GIB, 2)
        why = f"GiB of RAM, {cache.ratio:g} x {claimed} claimed bytes{part}"
        values["LMCACHE_MAX_LOCAL_CPU_SIZE"] = (str(share), why)
    return tuple(
        variable(name, value, reason, Origin.USER) for name, (value, reason) in values.items()
    )


def ram_of_cache(cache: ExtendedCache | None, accelerator_type: str, claimed: int) -> int:
    """Bytes of RAM that the cache takes on a host; 0 where there is none."""
    if cache is None or accelerator_type not in SUPPORTED:
        return 0
    return cache.ram_on_host(claimed)


def offload_warning(cache: ExtendedCache | None, accelerator_type: str) -> str:
    """Why the extended cache is left out; empty = it is not."""
    if cache is None or accelerator_type in SUPPORTED:
        return ""
    return f"extended_kv_cache: LMCache does not run on {accelerator_type}; it is left out"


def _gib(size: int) -> str:
    whole, rest = divmod(size, GIB)
    return str(round(size / GIB, 2)) if rest else str(whole)
