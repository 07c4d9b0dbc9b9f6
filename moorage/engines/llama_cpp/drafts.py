"""A draft model for llama.cpp: its file, the type of the drafts, and their lengths."""

from moorage.common.failures import Cause, Failure
from moorage.engines.flags import Flag, derived_flag, spec_flag
from moorage.engines.llama_cpp.options import DRAFTS_SINCE, build_of
from moorage.engines.request import LaunchRequest
from moorage.engines.vllm.companions import draft_path
from moorage.models.files import model_file
from moorage.models.pin import AssetRole
from moorage.spec import DraftMethod, EngineName

TYPE = "draft-simple"


def draft_flags(request: LaunchRequest) -> tuple[Flag, ...]:
    """The file, the type and the lengths; without a type the file is loaded and never asked."""
    wanted, folder = request.spec.speculative, draft_path(request)
    if wanted is None or not folder:
        return ()
    drafts = next(one for one in request.companions if one.role == AssetRole.DRAFT)
    path, least = f"{folder}/{model_file(drafts.model.files)}", wanted.min_acceptance
    floor = () if least is None else ("--spec-draft-p-min", f"{least:.2f}")
    return (
        spec_flag("speculative.model", "--spec-draft-model", path),
        derived_flag("a model of its own makes the drafts", "--spec-type", TYPE),
        spec_flag("speculative.tokens", "--spec-draft-n-max", str(wanted.tokens)),
        *([spec_flag("speculative.min_acceptance", *floor)] if floor else []),
    )


def draft_refusal(request: LaunchRequest) -> Failure | None:
    """Why no drafts can be made: they are of another kind, or the build is older."""
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


def _build(request: LaunchRequest) -> int:
    """The build that will run; 0 = not known."""
    program = request.host.program(EngineName.LLAMA_CPP)
    there = program.version if program and not request.in_container else ""
    version = request.image.engine_version if request.image else there
    number = build_of(version)
    return int(number) if number.isdecimal() else 0
