"""What a spec needs from elsewhere: the model, its LoRA adapters, its draft model."""

from collections.abc import Mapping
from typing import Any

from moorage.common.failures import Cause, Failure
from moorage.common.values import Value
from moorage.inventory.model_store import selection
from moorage.models.pin import AssetRole
from moorage.spec import AdapterSpec, EngineName, ModelSpec
from moorage.spec.patterns import AUTO_FILES


class Asset(Value):
    """Something that has to be on the host.

    Attributes:
        name: Name of the model or adapter; `draft` for the draft model.
        trust_remote_code: Whether Python code that comes with it may run.
        anything: Whether a directory without a configuration will do: a custom engine may know it.
        files: Pattern of the weight files that are taken; None = all of one format.
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
        """Its source, with the pattern of what is taken from it."""
        return selection(self.source, self.files)

    @property
    def step(self) -> str:
        """What distinguishes its steps from those of the model; empty for the model itself."""
        return "" if self.role == AssetRole.MODEL else f" {self.name}"


SourceRequest = ModelSpec | Asset
"""What names a source and its revision."""


def assets_of(spec: ModelSpec) -> tuple[Asset, ...]:
    """Everything that a spec names: the model first, then its adapters, then the draft model.

    With `files: auto` nothing is selected: a deploy puts the pattern of its choice there before.
    """
    model = Asset(
        role=AssetRole.MODEL,
        name=spec.name,
        source=spec.source,
        revision=spec.revision,
        trust_remote_code=spec.trust_remote_code,
        anything=spec.engine.stated_name == EngineName.CUSTOM,
        files=None if spec.files == AUTO_FILES else spec.files,
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
    """A LoRA adapter of a spec."""
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
"""What vLLM takes for `--max-lora-rank` ends there (0.32, `config/lora.py`)."""


def largest_rank(config: Mapping[str, Any] | None) -> int | None:
    """The largest rank in an `adapter_config.json`: its `r`, or that of single layers."""
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
    """Check that a stated rank holds the adapter.

    Raises:
        Failure: `BAD_SPEC` when it is too small, or either is too large for any engine.
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
    """The model that an adapter was made for, as its maker named it; empty = unknown."""
    return str(config.get("base_model_name_or_path") or "")


def is_made_for(base: str, source: str) -> bool:
    """Whether an adapter's base model seems to be a source.

    Where either is a directory, only the last part of the path is compared: it is all that the
    maker's machine and this one may have in common. An empty base counts as any.
    """
    if not base:
        return True
    model = source.partition("://")[2].rstrip("/").lower()
    made_for = base.rstrip("/").lower()
    if source.startswith("hf://") and made_for.count("/") == 1:
        return made_for == model
    return made_for.rpartition("/")[2] == model.rpartition("/")[2]
