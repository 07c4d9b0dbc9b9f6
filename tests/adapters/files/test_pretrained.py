from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.adapters.files import pretrained
from moorage.adapters.files.pretrained import read_config
from moorage.common.failures import Cause, Failure


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MOORAGE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    used: list[object] = []

    def refuse(*args: object) -> None:
        used.append(args)
        raise OSError("there is no network in this test")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    yield
    assert used == []


def read(directory: Path, config: Any, *, trust: bool = False) -> tuple[dict[str, Any], str]:
    (directory / "config.json").write_text(
        config if isinstance(config, str) else json.dumps(config)
    )
    return read_config(directory, trust_remote_code=trust)


def test_transformers_fills_in_what_the_file_leaves_out(tmp_path: Path) -> None:
    config, origin = read(tmp_path, {"model_type": "llama", "hidden_size": 64})
    assert origin == "transformers"
    assert config["hidden_size"] == 64
    assert config["num_hidden_layers"] == 32


def test_what_transformers_makes_of_a_file_is_kept(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = {"model_type": "llama", "hidden_size": 64}
    first = read(tmp_path, written)
    (kept,) = (home / "configs").iterdir()
    assert kept.stat().st_mode & 0o077 == 0
    monkeypatch.setattr(pretrained, "_completed", None)  # nobody asks it again
    assert read(tmp_path, written) == first
    monkeypatch.undo()
    monkeypatch.setenv("MOORAGE_HOME", str(home))
    kept.write_text("[")
    assert read(tmp_path, written) == first
    read(tmp_path, {**written, "hidden_size": 128})
    assert len(list((home / "configs").iterdir())) == 2


def test_what_the_code_of_a_model_says_is_not_kept(tmp_path: Path, home: Path) -> None:
    read(tmp_path, {"model_type": "llama"}, trust=True)
    read(tmp_path, {"model_type": "unheard-of"})
    assert not (home / "configs").exists()


def test_what_the_file_says_wins_and_nothing_of_it_is_lost(tmp_path: Path) -> None:
    written = {
        "model_type": "qwen2",
        "torch_dtype": "bfloat16",
        "sliding_window": 4096,
        "use_sliding_window": False,
        "rope_scaling": {"type": "yarn", "factor": 4.0},
        "quantization_config": {"quant_method": "unheard-of", "bits": 3},
        "of_its_own": {"deep": [1, {"er": None}]},
    }
    config, origin = read(tmp_path, written)
    assert origin == "transformers"
    assert config | written == config


def test_a_null_in_the_file_leaves_room_for_a_derived_value(tmp_path: Path) -> None:
    config, _ = read(tmp_path, {"model_type": "llama", "head_dim": None, "own": None})
    assert config["head_dim"] == 128
    assert config["own"] is None


def test_a_nested_configuration_is_completed_too(tmp_path: Path) -> None:
    text = {"model_type": "llama", "hidden_size": 64, "of_its_own": 1}
    config, _ = read(tmp_path, {"model_type": "llava", "text_config": text})
    assert config["text_config"] | text == config["text_config"]
    assert config["text_config"]["num_hidden_layers"] == 32


def test_the_result_is_plain_json_and_says_nothing_about_this_machine(tmp_path: Path) -> None:
    config, _ = read(tmp_path, {"model_type": "bert", "id2label": {"0": "no", "1": "yes"}})
    assert json.loads(json.dumps(config)) == config
    assert config["id2label"] == {"0": "no", "1": "yes"}
    assert str(tmp_path) not in json.dumps(config)


def test_an_unknown_model_type_is_read_from_the_file_alone(tmp_path: Path) -> None:
    written = {"model_type": "of-the-future", "hidden_size": 64}
    assert read(tmp_path, written) == (written, "config.json")


CODE = """
from transformers import PretrainedConfig
class OwnConfig(PretrainedConfig):
    model_type = "own"
    def __init__(self, depth=7, **rest):
        self.depth = depth
        super().__init__(**rest)
"""


@pytest.mark.parametrize(("trust", "origin"), [(True, "transformers"), (False, "config.json")])
def test_the_models_own_code_runs_only_if_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trust: bool, origin: str
) -> None:
    modules = str(tmp_path / "modules")
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", modules)
    (tmp_path / "configuration_own.py").write_text(CODE)
    written = {"model_type": "own", "auto_map": {"AutoConfig": "configuration_own.OwnConfig"}}
    config, found = read(tmp_path, written, trust=trust)
    assert found == origin
    assert config.get("depth") == (7 if trust else None)


def test_code_from_elsewhere_is_never_fetched(tmp_path: Path) -> None:
    written = {"model_type": "own", "auto_map": {"AutoConfig": "other/repo--code.OwnConfig"}}
    assert read(tmp_path, written, trust=True) == (written, "config.json")


@pytest.mark.parametrize("content", ["{", "", "[1]", '"text"', '{"a": ' * 200_000])
def test_a_malformed_file_is_refused_before_anybody_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    monkeypatch.setattr(
        "moorage.adapters.files.pretrained._completed", lambda *_: pytest.fail("completed")
    )
    with pytest.raises(Failure, match=r"config\.json is n") as caught:
        read(tmp_path, content)
    assert caught.value.cause is Cause.SOURCE_CORRUPT


def test_transformers_reads_no_file_that_was_not_checked(tmp_path: Path) -> None:
    """A configuration may name another one, and there it may wait for ever."""
    os.mkfifo(tmp_path / "config.4.0.0.json")
    written = {"model_type": "llama", "configuration_files": ["config.4.0.0.json"]}
    config, origin = read(tmp_path, written)
    assert (origin, config["num_hidden_layers"]) == ("transformers", 32)


def test_what_a_configuration_says_is_not_repeated(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    odd = {"rope_type": "yarn", "factor": 0.5, "odd": "\x1b[2J", "rope_theta": 1e4}
    read(tmp_path, {"model_type": "llama", "rope_parameters": odd})
    assert capfd.readouterr() == ("", "")


def test_a_missing_file_is_unreadable(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="No such file") as caught:
        read_config(tmp_path, trust_remote_code=False)
    assert caught.value.cause is Cause.CONFIG_UNREADABLE


def test_without_transformers_a_configuration_is_what_its_file_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pretrained, "find_spec", lambda _: None)
    config, origin = read(tmp_path, {"model_type": "llama"})
    assert config == {"model_type": "llama"}
    assert "transformers, which knows defaults, is not installed" in origin


def test_torch_is_not_imported_for_a_configuration(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama", "dtype": "bfloat16"}))
    program = (
        "import sys; from pathlib import Path;"
        "from moorage.adapters.files.pretrained import read_config;"
        "print(read_config(Path(sys.argv[1]), trust_remote_code=False)[1], 'torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["transformers", "False"]


def test_a_command_is_not_told_that_torch_is_not_there() -> None:
    program = "from moorage.adapters.files.pretrained import import_transformers as go; go()"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True
    )
    assert (done.stdout, done.stderr) == ("", "")


def test_a_transformers_that_refuses_its_own_needs_is_not_imported(tmp_path: Path) -> None:
    broken = tmp_path / "transformers"
    broken.mkdir()
    (broken / "__init__.py").write_text("raise ImportError('huggingface-hub<2 is required')")
    program = "from moorage.adapters.files.pretrained import import_transformers as go; go()"
    subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        timeout=120,
        check=True,
    )
