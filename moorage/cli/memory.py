"""`moorage memory`: predict accelerator memory from config.json and headers, without weights."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, get_args

import typer

from moorage.adapters.engines.schemas import check_early, versions_by_spec
from moorage.adapters.files.specs import load_fleet
from moorage.adapters.sources import read_keys, resolve_all
from moorage.adapters.system.settings import Settings
from moorage.cli.any_model import AnyModel, spec_or_source
from moorage.cli.options import AsJson
from moorage.cli.output import dump, say, show_document
from moorage.common.failures import Cause, ExitCode, Failure
from moorage.common.refusal import Refusal
from moorage.common.values import LARGEST
from moorage.engines.base import Engine
from moorage.engines.registry import ENGINES
from moorage.memory import sizing
from moorage.memory.demand import MemoryModel
from moorage.memory.gguf import gguf_memory
from moorage.memory.need import MemoryQuery
from moorage.memory.options import KVDtype
from moorage.memory.stated_options import memory_options, wanted_concurrency
from moorage.models.files import GGUF
from moorage.models.profile import derive_profile
from moorage.models.source import ResolvedModel
from moorage.reports.memory_report import answer_document, refused, sizes_document
from moorage.spec import EngineName, ModelSpec

Ranks = Annotated[int | None, typer.Option(min=1, max=65_536, help="Tensor-parallel ranks.")]
Stages = Annotated[int | None, typer.Option(min=1, max=65_536, help="Pipeline stages.")]
Tokens = Annotated[int | None, typer.Option(min=1, max=LARGEST, help="Longest request in tokens.")]
Concurrency = Annotated[
    int | None, typer.Option(min=1, max=LARGEST, help="Requests of that length at the same time.")
]
DeviceName = Annotated[
    str | None, typer.Option(help="Its size, such as 24GiB, or its name, such as h100.")
]
CacheType = Annotated[str | None, typer.Option(help="Element type of the KV cache, such as fp8.")]


def memory(
    model: AnyModel,
    tp: Ranks = None,
    pp: Stages = None,
    context: Tokens = None,
    concurrency: Concurrency = None,
    accelerator: DeviceName = None,
    kv_cache_dtype: CacheType = None,
    as_json: AsJson = False,
) -> None:
    """Predict the accelerator memory of a model from its configuration and headers."""
    wanted, path = spec_or_source(model)
    fleet = load_fleet(None, path)
    check_early(wanted, fleet, Settings().root)
    device = _device(accelerator) if accelerator else None
    resolved = resolve_all(wanted, Settings(), read_keys(wanted))
    sizeable = _model(wanted, resolved, kv_cache_dtype)
    query = _query(wanted, resolved, tp, pp, context, concurrency)
    engine = _engine(wanted)
    # The likely vLLM version decides whether its memory share includes CUDA graphs.
    versions = (versions_by_spec(wanted.engine, engine, fleet) or ("",))[:1]
    query = replace(query, versions=engine.vllm_versions(versions))
    whole = derive_profile(wanted.model_copy(update={"context": "auto"}), resolved).context
    longest = max(query.tokens, whole)
    if device:
        _show_one(wanted.name, sizing.answer(sizeable, device, query, longest), as_json)
    else:
        devices = [sizing.Device(total=size) for size in sizing.COMMON_SIZES]
        rows = [(device, sizing.smallest(sizeable, device, query, longest)) for device in devices]
        _show_sizes(wanted.name, query, rows, as_json)


def _show_one(name: str, found: sizing.Answer | Refusal, as_json: bool) -> None:
    if as_json:
        dump(_json(found))
    elif isinstance(found, Refusal):
        say(refused(found))
    else:
        show_document(answer_document(name, found))
    if isinstance(found, Refusal) or not found.fits:
        raise typer.Exit(ExitCode.NO_FIT)


def _show_sizes(
    name: str,
    query: MemoryQuery,
    rows: Sequence[tuple[sizing.Device, sizing.Answer | Refusal]],
    as_json: bool,
) -> None:
    refusals = {refused(found) for _, found in rows if isinstance(found, Refusal)}
    if as_json:
        dump([{"device": device.model_dump(), **_json(found)} for device, found in rows])
    elif len(refusals) == 1:
        say(*refusals)
    else:
        show_document(sizes_document(name, query, rows))
    if not any(isinstance(found, sizing.Answer) and found.fits for _, found in rows):
        raise typer.Exit(ExitCode.NO_FIT)


def _json(found: sizing.Answer | Refusal) -> Mapping[str, Any]:
    if isinstance(found, Refusal):
        return {"refusal": {"kind": found.reason, "reason": found.note}}
    content = found.model_dump(mode="json")
    inside, outside = found.need.inside, found.need.outside
    exact = sum(term.bytes for term in found.need.terms if term.exact)
    content["need"] |= {"inside": inside, "outside": outside, "exact_bytes": exact}
    content["need"]["estimated_bytes"] = inside + outside - exact
    return content


def _device(text: str) -> sizing.Device:
    device = sizing.find_device(text)
    if device is None:
        known = ", ".join(sizing.REPORTED_MIB)
        detail = f"--accelerator {text}: neither a size such as 24GiB nor one of {known}"
        raise Failure(Cause.BAD_SETTING, detail, suggestion="Pass its size, such as 24GiB.")
    return device


def _model(spec: ModelSpec, resolved: ResolvedModel, kv_cache_dtype: str | None) -> sizing.Sizeable:
    profile = derive_profile(spec, resolved)
    if profile.format == GGUF:
        return gguf_memory(spec, resolved, profile)
    options = memory_options(spec, profile.mode, resolved.companions)
    if kv_cache_dtype:
        if kv_cache_dtype not in get_args(KVDtype):
            known = ", ".join(get_args(KVDtype))
            raise Failure(Cause.BAD_SPEC, f"--kv-cache-dtype {kv_cache_dtype}: not one of {known}")
        options = options.model_copy(update={"kv_cache_dtype": kv_cache_dtype})
    config, headers = resolved.config, resolved.headers
    return MemoryModel(config, headers, options, files=resolved.weights, draft=resolved.draft)


def _engine(spec: ModelSpec) -> Engine:
    return ENGINES.get(spec.engine.stated_name, ENGINES[EngineName.VLLM])


def _query(
    spec: ModelSpec,
    resolved: ResolvedModel,
    tensor: int | None,
    pipeline: int | None,
    context: int | None,
    concurrency: int | None,
) -> MemoryQuery:
    """The query from the command's options, with the spec's values for missing options."""
    args = spec.engine.arguments
    profile = derive_profile(spec, resolved)
    flag = "--max-model-len"
    length = None if args.value(flag) in ("auto", "-1") else args.whole_number(flag)
    tokens = context or length or profile.context
    if concurrency:
        spec = spec.model_copy(update={"concurrency": concurrency})
    copies = args.whole_number("--data-parallel-size") if _engine(spec).copies_share_experts else 1
    return MemoryQuery(
        total=0,
        tensor=tensor or args.whole_number("--tensor-parallel-size") or 1,
        pipeline=pipeline or args.whole_number("--pipeline-parallel-size") or 1,
        data=copies or 1,
        tokens=tokens,
        concurrency=wanted_concurrency(spec, tokens, profile.encoder_tokens or 0),
    )
