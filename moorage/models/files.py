"""The files of a directory that an engine needs: metadata and one weight family, or an adapter."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from moorage.common.failures import Cause, Failure
from moorage.common.units import MIB
from moorage.models.source import ModelFile, SkippedFile

GGUF = "gguf"

WEIGHT_FAMILIES: dict[str, tuple[str, ...]] = {
    "safetensors": (".safetensors",),
    "bin": (".bin",),
    "pt": (".pt", ".pth"),
    GGUF: (".gguf",),
}
"""Families in the order of engines' preference; vLLM and transformers agree on the order."""

SHARD = re.compile(r"-\d{5}-of-\d{5}(?=\.gguf$)")
"""Number of a part in the file names of one GGUF model."""

PROJECTOR = "mmproj"
"""Part of the name of a GGUF file that turns images and audio into embeddings for a model."""

PROJECTOR_TYPES = ("F16", "BF16", "Q8_0", "F32")
"""Types of a projector that is offered in several, the preferred one first."""

IMATRIX = "imatrix"
"""Part of the name of a GGUF file with the importance of weights, used only for quantizing."""

CONSOLIDATED = "consolidated"
"""Prefix of the files of Mistral's own layout, which `--load-format mistral` of vLLM loads."""

DUPLICATES = (CONSOLIDATED, "original/", "onnx/", "openvino/", "metal/")
"""Prefixes of files and folders that repeat the same weights in another layout."""

UNUSED_SUFFIXES = (
    *(".onnx", ".h5", ".msgpack", ".ot", ".tflite", ".mlmodel", ".litertlm", ".pte", ".engine"),
    *(".nemo", ".ckpt", ".distcp", ".llamafile", ".parquet", ".tar", ".tar.gz"),
    *(".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".mp4", ".pdf"),
)
"""Formats that no supported engine loads, and images of the model's page."""

BIN_NOT_WEIGHTS = ("training_args.bin", "optimizer.bin", "scheduler.bin", "random_states")

HEADS = ("colbert_linear.pt", "sparse_linear.pt")
"""Small layers of BGE-M3 that vLLM loads next to its weights of another family."""

LARGEST_METADATA = 64 * MIB
"""Largest file that is read before the weights are fetched; tokenizers take up to 35 MiB."""

MODULE_FOLDER = re.compile(r"\d+_\w+")
"""Folder name in sentence-transformers of a layer that follows the model: `2_Dense`."""

ADAPTER_WEIGHTS = "adapter_model.safetensors"
ADAPTER_CONFIG = "adapter_config.json"
PIPELINE = "model_index.json"
"""Names the parts of a pipeline of diffusers, each in a directory of its own."""

NAMES_SHOWN = 8

Split = tuple[tuple[ModelFile, ...], tuple[SkippedFile, ...]]
"""The chosen files, and the skipped ones with their reasons."""

Choice = tuple[str, tuple[ModelFile, ...], tuple[SkippedFile, ...]]
"""The weight family, then a `Split`."""


def choose_files(files: Sequence[ModelFile], pattern: str = "") -> Choice:
    """Split the files of a model into chosen and skipped ones.

    Args:
        pattern: Pattern of weight files; empty = all files of the family that engines prefer.

    Raises:
        Failure: `SOURCE_INCOMPLETE` when there is no weight file, or none that matches the pattern,
            or several GGUF models match, or other weights than GGUF lack a config.json.
    """
    reasons = {file.name: _reason_to_skip(file.name, pattern) for file in files}
    if pattern and not any(_is_model(file.name) and not reasons[file.name] for file in files):
        found = sorted(file.name for file in files if _is_model(file.name))
        detail = f"no weight file is named like {pattern}; found {_listed(found) or 'none'}"
        suggestion = "Change `files`."
        if pattern.startswith(CONSOLIDATED):
            suggestion = "Change `files`, or leave `--load-format mistral` out of `engine.args`."
        raise Failure(Cause.SOURCE_INCOMPLETE, detail, suggestion=suggestion)
    families = _families_by_folder([file for file in files if not reasons[file.name]])
    family = _main_family(files, families)
    for name, reason in reasons.items():
        reasons[name] = reason or _reason_to_skip_weights(name, families, family)
    reasons |= _other_projectors([name for name, why in reasons.items() if not why], families)
    chosen, skipped = split(files, reasons)
    if family != GGUF and not any(file.name == "config.json" for file in chosen):
        raise lacks_config("config.json", any(file.name == PIPELINE for file in files))
    models = {SHARD.sub("", file.name) for file in chosen if _is_model(file.name)}
    if family == GGUF and len(models) > 1:
        # Several GGUF models in one source are usually quantizations of one model.
        raise Failure(
            Cause.SOURCE_INCOMPLETE,
            f"which of several GGUF models is meant: {_listed(sorted(models))}",
            suggestion='Choose one with `files`, such as `files: "*Q4_K_M*"`; with `files: auto` a'
            " deploy takes the best that fits.",
        )
    return family, chosen, skipped


def lacks_config(missing: str, is_pipeline: bool) -> Failure:
    """The failure of a model without a configuration; a pipeline of diffusers is several models."""
    if not is_pipeline:
        return Failure(Cause.SOURCE_INCOMPLETE, f"there is no {missing}")
    return Failure(
        Cause.SOURCE_INCOMPLETE,
        f"there is no {missing}, but {PIPELINE}: it is a pipeline of diffusers",
        suggestion="Only a custom engine takes pipelines, from a directory on the host: set"
        " `engine.name: custom`, an image that serves them, and `source: file:///...`.",
    )


def gguf_models(
    files: Iterable[ModelFile], *, preferred: bool = False
) -> dict[str, list[ModelFile]]:
    """The GGUF models of a source: the parts of each, by the name without the part's number.

    Args:
        preferred: Whether to return them even where engines would load another format of the
            source.
    """
    usable = [file for file in files if not _reason_to_skip(file.name)]
    families = _families_by_folder(usable)
    if not families or not (preferred or _main_family(usable, families) == GGUF):
        return {}
    found: dict[str, list[ModelFile]] = {}
    for file in usable:
        if _family_of(file.name) == GGUF and _is_model(file.name):
            found.setdefault(SHARD.sub("", file.name), []).append(file)
    return found


def model_file(files: Iterable[ModelFile]) -> str:
    """The file of a GGUF model that an engine opens: the only file, or the first part."""
    return min(file.name for file in files if _is_model(file.name))


def projector_file(files: Iterable[ModelFile]) -> str:
    """The file that turns images and audio into embeddings; empty = none."""
    found = (file.name for file in files if is_weight(file.name) and not _is_model(file.name))
    return min(found, default="")


def choose_adapter_files(files: Sequence[ModelFile], pattern: str = "") -> Choice:
    """Choose the files of a LoRA adapter: its configuration and weights, or one GGUF file.

    Args:
        pattern: Pattern of the GGUF file; empty = PEFT's files, else the only GGUF file.

    Raises:
        Failure: `SOURCE_INCOMPLETE` when neither is present, or several GGUF files match.
    """
    needed: tuple[str, ...] = (ADAPTER_CONFIG, ADAPTER_WEIGHTS)
    present = sorted(file.name for file in files)
    others = [name for name in present if name.endswith(f".{GGUF}")]
    if pattern or (others and not set(needed) <= set(present)):
        needed = (_gguf_adapter(others, pattern),)
    for name in needed:
        if name not in present:
            found = ", ".join(present[:NAMES_SHOWN]) or "nothing"
            raise Failure(
                Cause.SOURCE_INCOMPLETE,
                f"there is no {name}; found {found}",
                suggestion="A LoRA adapter is a folder with both, as PEFT saves it, or one GGUF"
                " file for llama.cpp.",
            )
    reasons = {name: "no part of the adapter" for name in present if name not in needed}
    return _family_of(needed[-1]), *split(files, reasons)


def _gguf_adapter(found: Sequence[str], pattern: str) -> str:
    named = [name for name in found if fnmatchcase(name, pattern or "*")]
    if len(named) == 1:
        return named[0]
    if not named:
        detail = f"no GGUF file is named like {pattern}; found {_listed(found) or 'none'}"
        raise Failure(Cause.SOURCE_INCOMPLETE, detail, suggestion="Change `files`.")
    raise Failure(
        Cause.SOURCE_INCOMPLETE,
        f"which of several GGUF adapters is meant: {_listed(named)}",
        suggestion='Choose one with `files`, such as `files: "*F16*"`.',
    )


@dataclass(frozen=True, slots=True)
class Layout:
    """A kind of directory: the name of its configuration, and the function that chooses files."""

    config: str
    choose: Callable[[Sequence[ModelFile], str], Choice]


MODEL = Layout("config.json", choose_files)
ADAPTER = Layout(ADAPTER_CONFIG, choose_adapter_files)


def is_weight(name: str) -> bool:
    """Whether a chosen file holds weights."""
    return bool(_family_of(name))


def is_metadata(file: ModelFile) -> bool:
    """Whether a chosen file is needed before the weights: it is none of them, and small."""
    return not is_weight(file.name) and file.size <= LARGEST_METADATA


def split(files: Sequence[ModelFile], reasons: Mapping[str, str]) -> Split:
    """Split files into chosen and skipped ones, the latter with a reason in `reasons`."""
    return tuple(file for file in files if not reasons.get(file.name)), tuple(
        SkippedFile(name=file.name, size=file.size, reason=reasons[file.name])
        for file in files
        if reasons.get(file.name)
    )


def _families_by_folder(candidates: Sequence[ModelFile]) -> dict[str, str]:
    """The family that engines prefer, for each folder that holds the weights of a model.

    A projector may be in the top folder while the model has a folder for each quantization.
    """
    models = [file.name for file in candidates if _is_model(file.name)]
    present = {(folder_of(name), _family_of(name)) for name in models}
    # Later keys overwrite earlier ones, so the preferred family comes last.
    return {
        folder: family
        for family in reversed(WEIGHT_FAMILIES)
        for folder, found in present
        if found == family
    }


def _main_family(files: Sequence[ModelFile], families: Mapping[str, str]) -> str:
    if "" in families:
        return families[""]
    for family in WEIGHT_FAMILIES:
        if family in families.values():
            return family
    names = sorted(file.name for file in files)
    own = [name for name in names if fnmatchcase(name, f"{CONSOLIDATED}*.safetensors")]
    if own:
        raise Failure(
            Cause.SOURCE_INCOMPLETE,
            f"the only weights are in Mistral's own layout: {_listed(own)}",
            suggestion="Add `--load-format mistral` to `engine.args`: vLLM loads them, next to a"
            " config.json.",
        )
    detail = f"there are no weight files; found {_listed(names) or 'nothing'}"
    raise Failure(Cause.SOURCE_INCOMPLETE, detail)


def _reason_to_skip_weights(name: str, families: Mapping[str, str], main: str) -> str:
    folder, family = folder_of(name), _family_of(name)
    if not family:
        return ""
    if folder in families and folder and "" in families and not MODULE_FOLDER.fullmatch(folder):
        return "engines load the weights that lie at the top"
    own = families.get(folder, GGUF)
    # Folders of GGUF files repeat the weights of other folders.
    wanted = main if own == GGUF else own
    return f"the same weights as {wanted}, which the engine loads first" * (family != wanted)


ONE_PROJECTOR = "one projector is loaded"
"""Beginning of the reason to skip the others; their presence counts in a fingerprint."""


def _other_projectors(names: Iterable[str], families: Mapping[str, str]) -> dict[str, str]:
    """Reasons to skip all projectors but one: the engine loads one of them."""

    def rank(name: str) -> tuple[bool, int, str]:
        words = re.split(r"[-.]", PurePosixPath(name).name.upper())
        types = [at for at, kind in enumerate(PROJECTOR_TYPES) if kind in words]
        return folder_of(name) not in families, min(types, default=len(PROJECTOR_TYPES)), name

    found = [name for name in names if _family_of(name) == GGUF and not _is_model(name)]
    best = min(found, key=rank, default="")
    return dict.fromkeys({*found} - {best}, f"{ONE_PROJECTOR}: {best}")


def folder_of(name: str) -> str:
    """The folder of a file by its path inside the model; empty = at the top."""
    return name.rpartition("/")[0]


def _family_of(name: str) -> str:
    own = PurePosixPath(name).name
    if own.startswith(BIN_NOT_WEIGHTS) or own in HEADS:
        return ""
    return next((family for family, ends in WEIGHT_FAMILIES.items() if name.endswith(ends)), "")


def _is_model(name: str) -> bool:
    return is_weight(name) and PROJECTOR not in PurePosixPath(name).name


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMES_SHOWN])


def _reason_to_skip(name: str, pattern: str = "") -> str:
    if any(part.startswith(".") for part in PurePosixPath(name).parts):
        return "hidden file"
    is_own_layout = pattern.startswith(CONSOLIDATED)
    if is_own_layout and name.endswith(".index.json") and not fnmatchcase(name, pattern):
        return "an index of the same weights in another layout"
    if name.startswith(DUPLICATES) and not (is_own_layout and fnmatchcase(name, pattern)):
        return "the same weights in another layout"
    if name.endswith(UNUSED_SUFFIXES):
        return "no engine here loads this format"
    if PurePosixPath(name).name.startswith(BIN_NOT_WEIGHTS):
        return "state of the training, not of the model"
    if name.endswith(f".{GGUF}") and IMATRIX in PurePosixPath(name).name:
        return "statistics for quantizing, no weights"
    if pattern and _is_model(name) and not fnmatchcase(name, pattern):
        return f"not named like {pattern}"
    return ""
