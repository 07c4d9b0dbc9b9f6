"""The quantizations of a GGUF model in a source, in the order in which a deploy tries them."""

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from moorage.common.failures import Cause, Failure
from moorage.common.values import Value
from moorage.models.files import GGUF, gguf_models
from moorage.models.source import ModelFile
from moorage.spec import ModelSpec
from moorage.spec.patterns import AUTO_FILES

UNQUANTIZED = r"BF16|FP?16|FP?32"
SIZES = r"(?:_(?:\d|K|MOE|[XSMLN]{1,3}))*"
LABEL = re.compile(
    rf"(?<![a-z0-9])(?:UD[-_.])?(?:(?:I?Q\d|TQ\d|MXFP4|NVFP4){SIZES}|(?P<whole>{UNQUANTIZED}))"
    r"(?![a-z0-9])",
    re.IGNORECASE,
)
"""The quantization in a file name: `Q4_K_M`, `UD-IQ2_XXS`, `BF16`."""

PART = re.compile(r"-\d{5}(?=-of-\d{5}\.gguf$)")
SEPARATORS = re.compile(r"[-_. ]+")
OTHER_CHARACTERS = re.compile(r"[^\w.@+=/-]", re.ASCII)
"""Characters that a pattern of files cannot contain, or that have a meaning in it."""

NAMES_SHOWN = 4


class Quantization(Value):
    """One quantization of a model: a file, or all of its parts.

    Attributes:
        name: Path of the file inside the source, without the number of a part.
        pattern: Pattern that selects its files, and no other weights.
        bytes: Size of all of its files, including headers.
    """

    name: str
    pattern: str
    bytes: int

    @property
    def bits(self) -> int:
        """Bits of an unquantized weight, from the name; 0 = quantized or unknown."""
        labels = list(LABEL.finditer(_stem(self.name)))
        # `f16-Q6_K` is quantized, except for its embeddings.
        if not labels or any(not label["whole"] for label in labels):
            return 0
        return max(int(label["whole"][-2:]) for label in labels)


class FileVerdict(Value):
    """Why one quantization was refused; the chosen one has no refusal."""

    name: str
    bytes: int
    refusal: str = ""


class FilesChoice(Value):
    """The quantization that a release serves, and why the others were refused.

    Attributes:
        pattern: Pattern that selects its files; empty = none fits.
        reason: Why this quantization was chosen.
        verdicts: One for each quantization, in the order of consideration.
    """

    pattern: str
    reason: str
    verdicts: tuple[FileVerdict, ...]


def quantizations(
    files: Iterable[ModelFile], *, preferred: bool = False
) -> tuple[Quantization, ...]:
    """The quantizations among the files of a source; none where only one model is present.

    Quantized ones come first, the largest of them first; unquantized ones come last.

    Args:
        preferred: As in `gguf_models`.

    Raises:
        Failure: `SOURCE_INCOMPLETE` when, by their names, they belong to several models.
    """
    models = gguf_models(files, preferred=preferred)
    if len(models) < 2:
        return ()
    _require_one_model(list(models))
    found = [_quantization(name, parts) for name, parts in models.items()]
    return tuple(sorted(found, key=lambda one: (one.bits, -one.bytes, one.name)))


def with_files(spec: ModelSpec, choice: FilesChoice | None) -> ModelSpec:
    """The spec with the chosen pattern in place of `files: auto`."""
    if spec.files != AUTO_FILES:
        return spec
    return spec.model_copy(update={"files": choice.pattern if choice else None})


def _quantization(name: str, parts: Sequence[ModelFile]) -> Quantization:
    pattern = PART.sub("-?????", OTHER_CHARACTERS.sub("?", parts[0].name))
    return Quantization(name=name, pattern=pattern, bytes=sum(part.size for part in parts))


def _require_one_model(names: Sequence[str]) -> None:
    """Check that all names belong to one model: a folder may hold several."""
    by_model = {_model_of(name): name for name in names}
    if len(by_model) == 1:
        return
    shown = ", ".join(sorted(by_model.values())[:NAMES_SHOWN])
    raise Failure(
        Cause.SOURCE_INCOMPLETE,
        f"files: auto: these do not look like quantizations of one model: {shown}",
        suggestion='Choose one with `files`, such as `files: "*Q4_K_M*"`.',
    )


def _model_of(name: str) -> str:
    """The name without its quantization."""
    return SEPARATORS.sub("-", LABEL.sub("", _stem(name))).strip("-").lower()


def _stem(name: str) -> str:
    return PurePosixPath(name).name.removesuffix(f".{GGUF}")
