"""Directories of this machine are read where they lie."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from moorage.adapters.sources import resolve_one, source_for
from moorage.adapters.sources.local import revision_now
from moorage.adapters.system.settings import Settings
from moorage.common.failures import Cause, Failure
from moorage.models.assets import Asset
from moorage.models.source import ResolvedModel
from tests.hub.tiny import WEIGHT_BYTES, gguf, model

SHARD = "model-2-of-2.safetensors"


def write(root: Path, files: Mapping[str, bytes]) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    return root


def resolve(root: Path, **more: object) -> ResolvedModel:
    asset = asset_at(root, **more)
    return source_for(asset, Settings()).resolve(asset)


def asset_at(root: Path, **more: object) -> Asset:
    known = {"role": "model", "name": "tiny", "source": f"file://{root}"}
    return Asset.model_validate({**known, **more})


def failure(root: Path) -> Failure:
    with pytest.raises(Failure) as caught:
        resolve(root)
    return caught.value


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write(tmp_path / "tiny-llama", model())


def test_a_directory_is_described_where_it_lies(root: Path) -> None:
    write(root, {".git/lfs/model.safetensors": b"x", "2_Dense/config.json": b"{}"})
    found = resolve(root, revision="ignored")
    assert (found.path, found.staged, found.asked_revision) == (str(root), True, "")
    assert "2_Dense/config.json" in {file.name for file in found.files}
    assert {file.name for file in found.skipped} == {"pytorch_model.bin"}
    assert (found.weights.bytes, found.weights.tensors) == (WEIGHT_BYTES, 3)
    assert found.config["hidden_size"] == 64


def test_the_headers_of_the_weights_come_along(root: Path) -> None:
    found = resolve(root)
    assert {name: (h.dtype, h.shape) for name, h in found.headers.items()} == {
        "embed": ("BF16", (500, 64)),
        "head": ("BF16", (700, 64)),
        "norm": ("F32", (64,)),
    }


def test_a_format_without_headers_has_none_and_an_index_announces_its_size(tmp_path: Path) -> None:
    index = b'{"weight_map": {"a": "m.bin"}, "metadata": {"total_size": 950}}'
    files = {"config.json": b"{}", "m.bin": b"x" * 1000, "pytorch_model.bin.index.json": index}
    found = resolve(write(tmp_path, files))
    assert (found.weights.family, found.weights.bytes, len(found.headers)) == ("bin", 950, 0)


def test_a_gguf_file_is_read_to_the_end_of_its_header(tmp_path: Path) -> None:
    content = gguf({"a": (2, [32, 10])}, 1000, words=200_000)
    found = resolve(write(tmp_path, {"config.json": b"{}", "m.gguf": content}))
    assert found.weights.bytes_by_dtype == {"Q4_0": 180}
    assert len(found.headers) == 0


@pytest.mark.parametrize("config", [None, b"{", b'{"model_type": "other", "text_config": {}}'])
def test_the_header_of_a_gguf_file_wins_over_a_config_json(
    tmp_path: Path, config: bytes | None
) -> None:
    beside = {"config.json": config} if config else {}
    found = resolve(write(tmp_path, {**beside, "m.gguf": gguf({"a": (0, [64])}, 256)}))
    # llama.cpp does not read it, and an adapter names its architecture as the header does.
    assert (found.config["model_type"], found.config_origin) == ("llama", "GGUF header")
    assert "text_config" not in found.config


@pytest.mark.parametrize(
    ("place", "chosen"),
    [
        ("m[1].gguf", ["m[1].gguf"]),
        ("m-00002-of-00002.gguf", ["m-00001-of-00002.gguf", "m-00002-of-00002.gguf"]),
    ],
)
def test_a_gguf_file_is_a_model_with_its_other_parts_and_nothing_else(
    tmp_path: Path, place: str, chosen: list[str]
) -> None:
    parts = ["m[1].gguf", "m1.gguf", "m-00001-of-00002.gguf", "m-00002-of-00002.gguf", "mmm.gguf"]
    content = gguf({"a": (0, [64])}, 256)
    root = write(tmp_path, {**dict.fromkeys(parts, content), "secret.txt": b"x"})
    found = resolve(root / place)
    assert [file.name for file in found.files] == chosen
    # Each is mounted by itself: the folder may hold anything.
    assert [file.target for file in found.files] == [f"{root}/{name}" for name in chosen]
    assert (found.config["model_type"], found.config_origin) == ("llama", "GGUF header")


BERT = b'{"position_embedding_type": "absolute", "max_position_embeddings": 514}'
ROTARY = b'{"max_position_embeddings": 514}'
TOKENIZER = {"tokenizer_config.json": b'{"model_max_length": 512}'}
SENTENCES = {"sentence_bert_config.json": b'{"max_seq_length": 256}'}


@pytest.mark.parametrize(
    ("config", "files", "longest"),
    [
        (BERT, TOKENIZER, 512),
        (ROTARY, TOKENIZER, None),
        (BERT, TOKENIZER | SENTENCES, 256),
        (ROTARY, SENTENCES, 256),
        (BERT, {"sentence_bert_config.json": b'{"max_seq_length": null}'}, None),
        (BERT, {}, None),
    ],
)
def test_settings_of_tokenizer_and_sentence_transformers_limit_an_input(
    root: Path, config: bytes, files: dict[str, bytes], longest: int | None
) -> None:
    assert resolve(write(root, {"config.json": config, **files})).longest_input == longest


@pytest.mark.parametrize(
    ("settings", "own"),
    [
        (b'{"auto_map": {"AutoTokenizer": ["code.Own", null]}, "tokenizer_class": "Own"}', True),
        (b'{"auto_map": {"AutoTokenizer": "code.Own"}}', True),
        (
            b'{"auto_map": {"AutoTokenizer": "code.Own"}, "tokenizer_class": "LlamaTokenizer"}',
            False,
        ),
        (b'{"auto_map": {"AutoTokenizer": [null, null]}}', False),
        (b'{"auto_map": ["AutoTokenizer"], "tokenizer_class": {}}', False),
        (b'{"tokenizer_class": "LlamaTokenizer"}', False),
        (b"[]", False),
    ],
)
def test_a_tokenizer_of_the_models_own_is_seen(root: Path, settings: bytes, own: bool) -> None:
    found = resolve(write(root, {"config.json": ROTARY, "tokenizer_config.json": settings}))
    assert found.has_own_tokenizer is own


MODELOPT = {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]}
KEPT = {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}


@pytest.mark.parametrize(
    ("config", "content", "expected"),
    [
        ({}, {"quantization": MODELOPT}, {"quant_method": "modelopt", "quantization": KEPT}),
        (
            {"quantization_config": None},
            {"quantization": {"quant_algo": "NVFP4"}},
            {"quant_method": "modelopt_fp4", "quantization": {"quant_algo": "NVFP4"}},
        ),
        ({"quantization_config": {}}, {"quantization": MODELOPT}, {}),
        ({}, {"quantization": {"quant_algo": None, "kv_cache_quant_algo": "FP8"}}, None),
        ({}, {"quantization": []}, None),
        ({}, [], None),
    ],
)
def test_the_quantisation_in_a_file_of_its_own_counts_where_the_configuration_has_none(
    root: Path, config: object, content: object, expected: object
) -> None:
    files = {"config.json": config, "hf_quant_config.json": content}
    found = resolve(write(root, {name: json.dumps(it).encode() for name, it in files.items()}))
    assert found.config.get("quantization_config") == expected


def test_staging_has_nothing_to_do(root: Path) -> None:
    seen: list[tuple[int, int]] = []
    asset = asset_at(root)
    source = source_for(asset, Settings())
    found = source.resolve(asset)
    assert source.stage(found, lambda done, total: seen.append((done, total))) == found
    assert seen == [(found.bytes_to_stage, found.bytes_to_stage)]


@pytest.mark.parametrize("change", ["gone", "cut"])
def test_staging_notices_what_changed_since(root: Path, change: str) -> None:
    asset = asset_at(root)
    source = source_for(asset, Settings())
    found = source.resolve(asset)
    (root / SHARD).unlink() if change == "gone" else (root / SHARD).write_bytes(b"short")
    with pytest.raises(Failure, match=SHARD) as caught:
        source.stage(found, lambda *_: None)
    assert caught.value.cause is Cause.SOURCE_INCOMPLETE


def test_the_revision_is_a_fingerprint_of_the_chosen_files(root: Path) -> None:
    before = resolve(root).revision
    assert before.startswith("local-")
    assert len(before) == len("local-") + 12
    write(root, {"pytorch_model.bin": b"not chosen"})
    assert resolve(root).revision == before
    os.utime(root / SHARD, ns=(1, 1))
    touched = resolve(root).revision
    write(root, {"tokenizer_config.json": b"{}"})
    assert len({before, touched, resolve(root).revision}) == 3


@pytest.mark.parametrize("kind", ["directory", "file", "custom"])
def test_its_revision_is_known_again_from_the_names_of_its_files(root: Path, kind: str) -> None:
    write(root, {"tiny-Q8_0.gguf": gguf({"a": (0, [64])}, 256)})
    if kind == "custom":
        (root / "config.json").unlink()
    source = root / "tiny-Q8_0.gguf" if kind == "file" else root
    found = resolve(source, anything=kind == "custom")
    (files,) = found.local_files
    assert (files.source, files.revision) == (found.source, found.revision)
    assert revision_now(files.source, files.names) == found.revision
    write(root, {"notes.txt": b"new"})
    assert revision_now(files.source, files.names) == found.revision
    changed = root / files.names[-1]
    os.utime(changed, ns=(1, 1))
    now = revision_now(files.source, files.names)
    assert now.startswith("local-")
    assert now != found.revision
    changed.unlink()
    assert revision_now(files.source, files.names) == ""


def test_links_to_files_are_followed(root: Path, tmp_path: Path) -> None:
    blob = tmp_path / "blob"
    (root / SHARD).rename(blob)
    (root / SHARD).symlink_to(blob)
    found = resolve(root)
    assert found.weights.bytes == WEIGHT_BYTES
    assert {file.name: file.target for file in found.files if file.target} == {SHARD: str(blob)}


def test_a_missing_directory_suggests_its_neighbour(root: Path) -> None:
    found = failure(root.parent / "tiny-lama")
    assert found.cause is Cause.SOURCE_MISSING
    assert found.detail == f"there is no {root.parent}/tiny-lama"
    assert found.suggestion == f"Did you mean file://{root}?"


@pytest.mark.parametrize(
    ("path", "words"), [("nothing-like-it", "Correct the path."), ("no/such/parent", "either")]
)
def test_without_a_neighbour_the_suggestion_is_general(root: Path, path: str, words: str) -> None:
    assert words in failure(root.parent / path).suggestion


def test_a_file_is_no_directory(root: Path) -> None:
    found = failure(root / "config.json")
    assert (found.cause, "is a file" in found.detail) == (Cause.SOURCE_MISSING, True)


@pytest.mark.parametrize(
    ("damage", "cause", "words"),
    [
        ("no config", Cause.SOURCE_INCOMPLETE, "there is no config.json"),
        ("pipeline", Cause.SOURCE_INCOMPLETE, "it is a pipeline of diffusers"),
        ("no shard", Cause.SOURCE_INCOMPLETE, f"names missing files: {SHARD}"),
        ("cut shard", Cause.SOURCE_CORRUPT, f"{SHARD} is not a whole safetensors file"),
        ("dead link", Cause.SOURCE_INCOMPLETE, f"{SHARD} is a link to nothing"),
    ],
)
def test_an_incomplete_directory_says_what_it_lacks(
    root: Path, damage: str, cause: Cause, words: str
) -> None:
    match damage:
        case "no config":
            (root / "config.json").unlink()
        case "pipeline":
            (root / "config.json").rename(root / "model_index.json")
        case "no shard":
            (root / SHARD).unlink()
        case "cut shard":
            os.truncate(root / SHARD, 5000)
        case "dead link":
            (root / SHARD).unlink()
            (root / SHARD).symlink_to(root / "nowhere")
    found = failure(root)
    assert found.cause is cause
    assert words in found.detail


def test_an_unreadable_file_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, *_: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("moorage.adapters.sources.describe.read_part", refuse)
    found = failure(root)
    assert found.cause is Cause.SOURCE_INCOMPLETE
    assert found.detail.endswith(".safetensors cannot be read: Permission denied")


def test_an_unlistable_directory_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "scandir", refuse)
    assert failure(root).detail == f"{root} cannot be read: Permission denied"


def resolve_anything(root: Path) -> ResolvedModel:
    """As the one asset of a custom engine."""
    return resolve_one(asset_at(root, anything=True), Settings())


def test_a_custom_engine_may_have_files_that_nobody_else_understands(tmp_path: Path) -> None:
    root = write(tmp_path / "any", {"a.onnx": b"xx", "deep/b": b"y", ".git/c": b"zzz"})
    found = resolve_anything(root)
    assert {file.name for file in found.files} == {"a.onnx", "deep/b"}
    assert (found.weights.family, found.weights.bytes, found.config) == ("files", 3, {})
    assert found.staged
    (root / "a.onnx").write_bytes(b"xxx")
    assert resolve_anything(root).revision != found.revision


def test_with_a_configuration_it_is_read_for_a_custom_engine_too(root: Path) -> None:
    assert resolve_anything(root).config == resolve(root).config


def test_a_custom_engine_needs_a_model_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Failure, match="there is nothing in"):
        resolve_anything(tmp_path)
    with pytest.raises(Failure, match="there is no"):
        resolve_anything(tmp_path / "gone")
    monkeypatch.setattr("moorage.adapters.sources.local.MOST_FILES", 1)
    with pytest.raises(Failure, match="there are more than 1 files"):
        resolve_anything(write(tmp_path, {"a": b"x", "b": b"y"}))


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("tokenizer.json", "/etc/hostname"),
        (SHARD, "/etc/hostname"),
        ("chat_template.jinja", "login"),
        ("config.json", "login"),
        ("deep/notes.md", "login"),
    ],
)
def test_a_link_to_what_is_not_the_models_is_not_followed(
    root: Path, name: str, target: str
) -> None:
    login = root.parent / "login"
    login.write_text("secret")
    (root / name).parent.mkdir(exist_ok=True)
    (root / name).unlink(missing_ok=True)
    (root / name).symlink_to(root.parent / target)
    found = failure(root)
    assert found.cause is Cause.SOURCE_CORRUPT
    assert f"{root / name} is a link to {root.parent / target}" in found.detail


def test_of_files_that_nobody_reads_no_link_leads_out(tmp_path: Path) -> None:
    root = write(tmp_path / "any", {"a.onnx": b"x"})
    write(tmp_path, {"login": b"secret"})
    (root / "b.safetensors").symlink_to(tmp_path / "login")
    with pytest.raises(Failure, match="is a link to") as caught:
        resolve_anything(root)
    assert caught.value.cause is Cause.SOURCE_CORRUPT


@pytest.mark.parametrize("own", ["blobs", "elsewhere"])
def test_a_snapshot_of_the_hubs_cache_links_to_the_blobs_beside_it(
    tmp_path: Path, own: str
) -> None:
    snapshot, blobs = tmp_path / "org--tiny" / "snapshots" / "abc", tmp_path / "org--tiny" / own
    write(blobs, model())
    for path in blobs.iterdir():
        (snapshot / path.name).parent.mkdir(parents=True, exist_ok=True)
        (snapshot / path.name).symlink_to(path)
    if own == "blobs":
        assert resolve(snapshot).weights.bytes == WEIGHT_BYTES
    else:
        assert failure(snapshot).cause is Cause.SOURCE_CORRUPT
