"""The downloads of a spec: the model, its LoRA adapters, its draft model."""

from collections.abc import Mapping
from typing import Any

from moorage.common.failures import Cause, Failure
from moorage.common.values import Value
from moorage.inventory.model_store import selection
from moorage.models.pin import AssetRole
from moorage.spec import AdapterSpec, EngineName, ModelSpec


class Asset(Value):
    """A model or adapter that the host needs.

    Attributes:
        name: Name of the model or adapter; `draft` for the draft model.
        anything: Whether a directory without a configuration is accepted: a custom engine may load
            it.
        files: Pattern of the weight files to download; None = all of one format.
    """

    role: AssetRole
    name: str
    source: str
    revision: str | None = None
    trust_remote_code: bool = False
    rank: int | None = None
    anything: bool = False
    files: str | None = None

    @property
    def selection(self) -> str:
        """Its source, with the pattern of the selected files."""
        return selection(self.source, self.files)

    @property
    def step(self) -> str:
        """Suffix that tells its steps from those of the model; empty for the model itself."""
        return "" if self.role == AssetRole.MODEL else f" {self.name}"


def assets_of(spec: ModelSpec) -> tuple[Asset, ...]:
    """All assets of a spec: the model first, then its adapters, then the draft model.

    With `files: auto` no files are selected: a deploy replaces `auto` by a pattern beforehand.
    """
    model = Asset(
        role=AssetRole.MODEL,
        name=spec.name,
        source=spec.source,
        revision=spec.revision,
        trust_remote_code=spec.trust_remote_code,
        anything=spec.engine.stated_name == EngineName.CUSTOM,
        files=spec.weight_files,
    )
    assets = [model, *map(adapter_asset, spec.lora)]
    draft = spec.speculative
    if draft and draft.model:
        assets.append(
            Asset(
                role=AssetRole.DRAFT,
                name="draft",
                source=draft.model,
                revision=draft.revision,
                files=draft.files,
                trust_remote_code=spec.trust_remote_code,
            )
        )
    return tuple(assets)


def adapter_asset(adapter: AdapterSpec) -> Asset:
    """The asset of a LoRA adapter in a spec."""
    return Asset(
        role=AssetRole.ADAPTER,
        name=adapter.name,
        source=adapter.source,
        revision=adapter.revision,
        rank=adapter.rank,
        files=adapter.files,
    )


LORA = "LORA"
"""The only `peft_type` that engines load; PEFT has some thirty."""

LARGEST_RANK = 512
"""Largest value that vLLM accepts for `--max-lora-rank` (0.32, `config/lora.py`)."""


def largest_rank(config: Mapping[str, Any] | None) -> int | None:
    """The largest rank in an `adapter_config.json`: of `r` and of the ranks of single layers."""
    if not isinstance(config, Mapping):
        return None
    pattern = config.get("rank_pattern")
    single = pattern.values() if isinstance(pattern, Mapping) else ()
    ranks = [rank for rank in (config.get("r"), *single) if isinstance(rank, int)]
    return max(ranks, default=None)


def require_lora(config: Mapping[str, Any]) -> None:
    """Check that an adapter is a LoRA.

    Raises:
        Failure: `SOURCE_INCOMPLETE` when it is another kind of adapter.
    """
    kind = config.get("peft_type", LORA)
    if kind != LORA:
        raise Failure(
            Cause.SOURCE_INCOMPLETE,
            f"adapter_config.json says peft_type {kind!r}; only {LORA} can be served",
            suggestion="Take a LoRA adapter, or merge this one into the model and serve that.",
        )


def require_rank(name: str, stated: int | None, config: Mapping[str, Any]) -> None:
    """Check that a stated rank is large enough for the adapter.

    Raises:
        Failure: `BAD_SPEC` when the stated rank is too small, or either rank too large for any
            engine.
    """
    real = largest_rank(config)
    rank = max(stated or 0, real or 0)
    if rank > LARGEST_RANK:
        raise Failure(
            Cause.BAD_SPEC,
            f"lora: {name} has rank {rank}, engines take at most {LARGEST_RANK}",
            suggestion="Merge the adapter into the model and serve that.",
        )
    if stated is not None and real is not None and stated < real:
        raise Failure(
            Cause.BAD_SPEC,
            f"lora: {name} has rank {real}, the spec makes room for {stated}",
            suggestion="Leave `rank` out: it is read from the adapter.",
        )


def base_model(config: Mapping[str, Any]) -> str:
    """The base model that the adapter's configuration names; empty = unknown."""
    return str(config.get("base_model_name_or_path") or "")


def is_made_for(base: str, source: str) -> bool:
    """Whether an adapter's base model seems to be the model of a source.

    Where either is a directory, only the last part of the path is compared: the rest may differ
    between the author's machine and this one. An empty base matches any source.
    """
    if not base:
        return True
    model = source.partition("://")[2].rstrip("/").lower()
    made_for = base.rstrip("/").lower()
    if source.startswith("hf://") and made_for.count("/") == 1:
        return made_for == model
    return made_for.rpartition("/")[2] == model.rpartition("/")[2]
