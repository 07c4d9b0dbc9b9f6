"""Files that llama.cpp loads with a model: LoRA adapters, one GGUF file each, and a draft model."""

from collections.abc import Iterator

from moorage.common.failures import Cause, Failure
from moorage.engines.companions import adapters, draft_path
from moorage.engines.flags import Flag, derived_flag, spec_flag
from moorage.engines.llama_cpp.options import DRAFTS_SINCE, build_of
from moorage.engines.request import LaunchRequest
from moorage.models.files import model_file
from moorage.models.pin import AssetRole
from moorage.models.source import Companion
from moorage.spec import DraftMethod, EngineName

NO_CACHE = "--no-cache-prompt"
ADAPTERS_SINCE = 7827
"""First build that is known to have `NO_CACHE`."""

DRAFT_TYPE = "draft-simple"
SEPARATORS = ':,"'
"""Characters that separate or quote files and scales in `--lora-scaled`."""


def adapter_flags(request: LaunchRequest) -> tuple[Flag, ...]:
    """The adapter files, each with scale 0, so that requests use an adapter only on demand.

    llama-server (build 11549) caches the beginning of a prompt whatever adapter computed it, and
    reuses it for requests without an adapter, so the cache is switched off.
    """
    files = ",".join(f"{path}:0" for _, path in _files(request))
    if not files:
        return ()
    return (
        spec_flag("lora: applied where a request says so", "--lora-scaled", files),
        derived_flag("what an adapter computed is not the model's own", NO_CACHE),
    )


def adapter_refusal(request: LaunchRequest) -> Failure | None:
    """Why an adapter cannot be loaded, such as an old build, or another architecture."""
    served, known = request.profile.model_type, request.arguments
    for item, path in _files(request):
        if known and NO_CACHE not in known.options:
            return Failure(
                Cause.BAD_SPEC,
                f"lora: build {known.version} of llama.cpp would answer with what an adapter"
                f" computed for another request: it has no {NO_CACHE}",
                suggestion=f"Take `engine.version` {ADAPTERS_SINCE} or newer.",
            )
        made_for = item.model.config.get("model_type")
        if made_for != served:
            return Failure(
                Cause.BAD_SPEC,
                f"lora: {item.name} was made for a model of the architecture {made_for}, and"
                f" {served} is served",
                suggestion="Take an adapter that was made for this model.",
            )
        if any(character in path for character in SEPARATORS):
            return Failure(
                Cause.BAD_SPEC,
                f"lora: llama-server does not take the path of {item.name}: {path}",
                suggestion="Rename what has a colon, a comma or a quote in its name.",
            )
    return None


def adapter_warnings(request: LaunchRequest) -> tuple[str, ...]:
    """Warnings on how requests select adapters, and on stated ranks, which have no effect."""
    names = [item.name for item, _ in _files(request)]
    ranks = [item.name for item in request.spec.lora if item.rank is not None]
    listed = ", ".join(f"{number} is {name}" for number, name in enumerate(names))
    how = f'lora: requests take an adapter by `"lora": [{{"id": 0, "scale": 1}}]`; {listed}'
    unused = (
        f"lora: `rank` of {', '.join(ranks)} has no effect, llama.cpp takes adapters as they are"
    )
    return (*[how] * bool(names), *[unused] * bool(ranks))


def draft_flags(request: LaunchRequest) -> tuple[Flag, ...]:
    """File, type and lengths of drafts; without a type, the draft model loads but stays unused."""
    wanted, folder = request.spec.speculative, draft_path(request)
    if wanted is None or not folder:
        return ()
    drafts = next(one for one in request.model.companions if one.role == AssetRole.DRAFT)
    path, least = f"{folder}/{model_file(drafts.model.files)}", wanted.min_acceptance
    floor = () if least is None else ("--spec-draft-p-min", f"{least:.2f}")
    return (
        spec_flag("speculative.model", "--spec-draft-model", path),
        derived_flag("a model of its own makes the drafts", "--spec-type", DRAFT_TYPE),
        spec_flag("speculative.tokens", "--spec-draft-n-max", str(wanted.tokens)),
        *([spec_flag("speculative.min_acceptance", *floor)] if floor else []),
    )


def draft_refusal(request: LaunchRequest) -> Failure | None:
    """Why drafts are impossible: an unsupported method, or an old build."""
    wanted, build = request.spec.speculative, _build(request)
    if wanted and wanted.method != DraftMethod.DRAFT_MODEL:
        return Failure(
            Cause.BAD_SPEC,
            f"speculative.method: llama.cpp does not make drafts by {wanted.method}",
            suggestion="Take `draft_model` with a GGUF model of the same vocabulary.",
        )
    if wanted and build and build < DRAFTS_SINCE:
        return Failure(
            Cause.BAD_SPEC,
            f"speculative: build {build} of llama.cpp names the options of drafts otherwise",
            suggestion=f"Take `engine.version` {DRAFTS_SINCE} or newer.",
        )
    return None


def _files(request: LaunchRequest) -> Iterator[tuple[Companion, str]]:
    """The adapters, with the paths of their files as the engine sees them."""
    items = (item for item in request.model.companions if item.role == AssetRole.ADAPTER)
    for item, adapter in zip(items, adapters(request), strict=True):
        yield item, f"{adapter.path}/{item.model.files[0].name}"


def _build(request: LaunchRequest) -> int:
    """The build that will run; 0 = unknown."""
    program = request.host.program(EngineName.LLAMA_CPP)
    there = program.version if program and not request.in_container else ""
    version = request.image.engine_version if request.image else there
    number = build_of(version)
    return int(number) if number.isdecimal() else 0
