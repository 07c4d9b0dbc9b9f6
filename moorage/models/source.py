"""A model at its source: revision pinned, files listed, weights not yet downloaded."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Iterable, Sequence
from functools import cache
from math import prod
from typing import Any

from pydantic import Field, InstanceOf

from moorage.common.values import Value
from moorage.inventory.model_store import model_directory
from moorage.models.assets import Asset, largest_rank
from moorage.models.pin import AssetRole, LocalFiles, Pin


class TensorHeader(Value):
    """One tensor's entry in a header; its element type has safetensors' name."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        """Number of elements."""
        return prod(self.shape)


class TensorHeaders(UserDict[str, TensorHeader]):
    """The headers of a model, by tensor name; never modified.

    Neither a dict nor a `Value` on purpose: Prefect walks through those in the arguments of tasks,
    and a model may have 100,000 tensors. Equal headers are stored once. A repeated name replaces
    the earlier entry.
    """

    def __init__(self, headers: Iterable[tuple[str, str, tuple[int, ...]]] = ()) -> None:
        header = cache(lambda dtype, shape: TensorHeader(dtype=dtype, shape=shape))
        self.data = {name: header(dtype, shape) for name, dtype, shape in headers}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} tensors)"


class ModelFile(Value):
    """One file of a model.

    Attributes:
        name: Path inside the model, with forward slashes.
        sha256: Checksum that the source announces for a large (LFS) file, else empty.
        git_oid: Git's blob id (SHA-1) that the source announces for a small file, else empty.
        md5: ETag of a file in an S3 bucket, where it is made of MD5 checksums, else empty.
        part: Bytes of each part, where such a file was uploaded in parts; 0 = uploaded whole.
        etag: ETag of this content at the source, for conditional requests; empty = none.
        target: The real path, where the file is a link out of the model's directory.
    """

    name: str
    size: int
    sha256: str = ""
    git_oid: str = ""
    md5: str = ""
    part: int = 0
    etag: str = ""
    target: str = ""

    @property
    def checksum(self) -> str:
        """The checksum for its content; empty = its source announces none."""
        return self.sha256 or self.git_oid or self.md5


class SkippedFile(Value):
    """A file that is not needed, and why."""

    name: str
    size: int
    reason: str


class WeightSummary(Value):
    """Totals from the headers of the weight files.

    Attributes:
        family: Format of the weights: `safetensors`, `bin`, `gguf`, ...
        bytes: Bytes of all tensors (of all weight files where the format has no header).
        bytes_by_dtype: Bytes of the tensors by dtype, such as `{"BF16": 16_060_522_496}`.
    """

    family: str
    bytes: int
    tensors: int = 0
    bytes_by_dtype: dict[str, int] = {}


TEKKEN = "tekken.json"
"""The file of Mistral's own tokenizer."""


class ResolvedModel(Value):
    """The result of step `resolve`.

    Attributes:
        revision: Commit on the hub, or the fingerprint of a local directory.
        asked_revision: Revision in the spec; empty = the default branch.
        path: Directory that holds the model, or will hold it once its weights are staged.
        staged: Whether every chosen file is already in `path`, complete.
        files: The chosen files: metadata and one weight family.
        fingerprinted: Names of the files that make the revision of a local directory, in order.
        config: Content of config.json, enriched by transformers where it knows the model type.
        config_origin: Who read the configuration: `transformers` or `config.json`.
        is_sentence_encoder: Whether the model carries a sentence-transformers pooling setup.
        longest_input: Tokens of the longest input to pool, as its sentence-transformers or
            tokenizer settings limit it; None = they do not.
        has_own_tokenizer: Whether its tokenizer is code of its own.
        headers: The weight headers; empty where the format has none, or where they were not read.
            Never recorded.
        companions: Adapters and draft model; they have no companions of their own.
        updates_folder: Directory for adapters that are loaded while the model serves; empty = none.
    """

    source: str
    revision: str
    asked_revision: str = ""
    path: str
    staged: bool
    files: tuple[ModelFile, ...]
    skipped: tuple[SkippedFile, ...] = ()
    fingerprinted: tuple[str, ...] = ()
    config: dict[str, Any]
    config_origin: str
    is_sentence_encoder: bool = False
    longest_input: int | None = None
    has_chat_template: bool = False
    has_own_tokenizer: bool = False
    weights: WeightSummary
    headers: InstanceOf[TensorHeaders] = Field(TensorHeaders(), exclude=True, repr=False)
    companions: tuple[Companion, ...] = ()
    updates_folder: str = ""

    @property
    def bytes_to_stage(self) -> int:
        """Bytes of the chosen files."""
        return sum(file.size for file in self.files)

    @property
    def has_only_tekken(self) -> bool:
        """Whether Mistral's own tokenizer, which builds chats itself, is its only one."""
        names = {file.name for file in self.files}
        return TEKKEN in names and names.isdisjoint({"tokenizer.json", "tokenizer.model"})

    @property
    def parts(self) -> tuple[ResolvedModel, ...]:
        """The model, then its companions, in the order of `assets_of`."""
        return (self, *(companion.model for companion in self.companions))

    @property
    def pins(self) -> tuple[Pin, ...]:
        """The pinned revisions of the companions, for the record."""
        return tuple(companion.pin for companion in self.companions)

    @property
    def local_files(self) -> tuple[LocalFiles, ...]:
        """The files of its local directories, for the record."""
        return tuple(
            LocalFiles(source=one.source, revision=one.revision, names=one.fingerprinted)
            for one in self.parts
            if one.fingerprinted
        )

    @property
    def draft(self) -> ResolvedModel | None:
        """Its draft model; None = there is none."""
        return next((c.model for c in self.companions if c.role == AssetRole.DRAFT), None)


class Companion(Value):
    """A LoRA adapter or the draft model: resolved, staged and loaded with the model.

    The draft model's name is `draft`. The configuration of an adapter is its `adapter_config.json`.
    """

    role: AssetRole
    name: str
    model: ResolvedModel

    @property
    def rank(self) -> int | None:
        """Largest rank of an adapter; None = unknown, or not an adapter."""
        return largest_rank(self.model.config) if self.role == AssetRole.ADAPTER else None

    @property
    def pin(self) -> Pin:
        """Its pinned revision."""
        return Pin(
            role=self.role,
            name=self.name,
            source=self.model.source,
            revision=self.model.revision,
            rank=self.rank,
        )


def join_companions(assets: Sequence[Asset], found: Sequence[ResolvedModel]) -> ResolvedModel:
    """The first resolved model with the others as companions; both lists follow `assets_of`."""
    model, *others = found
    companions = tuple(
        Companion(role=asset.role, name=asset.name, model=other)
        for asset, other in zip(assets[1:], others, strict=True)
    )
    return model.model_copy(update={"companions": companions})


def on_host(model: ResolvedModel, store: str, role: AssetRole = AssetRole.MODEL) -> ResolvedModel:
    """A model and its companions with their paths in the store of a remote host.

    An empty `store` stands for this machine: the model is returned unchanged.
    """
    if not store:
        return model
    moved = {
        "path": model_directory(folder_of(role, store), model.source, model.revision),
        # A link on this machine is a file on the host.
        "files": tuple(file.model_copy(update={"target": ""}) for file in model.files),
        "companions": tuple(
            one.model_copy(update={"model": on_host(one.model, store, one.role)})
            for one in model.companions
        ),
        "updates_folder": "",
    }
    return model.model_copy(update=moved)


def folder_of(role: AssetRole, store: str) -> str:
    """The folder of a store for a role: one repository may hold both an adapter and a model."""
    return f"{store.rstrip('/')}/{'adapters' if role == AssetRole.ADAPTER else 'models'}"
