"""The script that prepares a container, run by sh with stand-ins for uv, pip and the engine."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

SCRIPT = files("moorage.engines").joinpath("prepare.sh").read_text()
TOOLS = ("head", "tr", "cut", "env", "grep", "sort")
ENGINE = "#!{bin}/python3\necho engine $*\n"
TELLS = (
    '#!/bin/sh\necho "{name} $*"; env | grep -E "^(UV|PIP)_.*(INDEX|LINKS|HOST|TIMEOUT)" | sort\n'
)


class Image:
    """A folder of programs that is all the script can reach."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder
        for tool in TOOLS:
            found = shutil.which(tool)
            assert found
            (self.bin / tool).symlink_to(found)

    def add(self, name: str, text: str) -> None:
        program = self.bin / name
        program.write_text(text)
        program.chmod(0o755)

    def run(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["/bin/sh", "-c", SCRIPT, "moorage-prepare", *words],
            env={"PATH": str(self.bin), **environment},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def image(tmp_path: Path) -> Image:
    """An image with an engine in Python and pip."""
    made = Image(tmp_path)
    made.add("python3", TELLS.format(name="python"))
    made.add("vllm", ENGINE.format(bin=tmp_path))
    return made


def test_it_becomes_the_engine_with_the_very_words(image: Image) -> None:
    image.add("engine", '#!/bin/sh\nfor word in "$@"; do echo "<$word>"; done; echo $$\n')
    words = ("a b", "{{x}}", "*", '{"k": 1}', "--packages", "$HOME", "--")
    with subprocess.Popen(
        ["/bin/sh", "-c", SCRIPT, "moorage-prepare", "--", "engine", *words],
        env={"PATH": str(image.bin)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        output = process.communicate()[0].splitlines()
    assert output == [*(f"<{word}>" for word in words), str(process.pid)]


def test_a_signal_reaches_the_engine_and_its_status_comes_back(image: Image) -> None:
    image.add("engine", "#!/bin/sh\ntrap 'exit 7' TERM\necho up\nwhile :; do :; done\n")
    with subprocess.Popen(
        ["/bin/sh", "-c", SCRIPT, "moorage-prepare", "--", "engine"],
        env={"PATH": str(image.bin)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "up\n"
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(60) == 7


def test_pip_installs_into_the_engines_own_python(image: Image) -> None:
    packages = "name==1.* other[x]>=1,<2"
    done = image.run("--packages", packages, "--", "vllm", "serve", PIP_INDEX_URL="http://i/s")
    assert done.returncode == 0, done.stderr
    assert f"python -m pip install -- {packages}\n" in done.stdout
    assert "PIP_INDEX_URL=http://i/s" in done.stdout
    assert f"python {image.bin}/vllm serve\n" in done.stdout
    assert f"moorage-prepare: pip installs {packages}" in done.stderr


def test_uv_is_preferred_and_told_what_is_said_for_pip(image: Image) -> None:
    image.add("uv", TELLS.format(name="uv"))
    done = image.run(
        *("--packages", "name", "--", "vllm"),
        PIP_INDEX_URL="http://own/simple",
        PIP_EXTRA_INDEX_URL="http://more/simple",
        PIP_FIND_LINKS="/a /b",
        PIP_TRUSTED_HOST="own",
    )
    assert f"--python {image.bin}/python3 -- name" in done.stdout
    for line in (
        "UV_DEFAULT_INDEX=http://own/simple",
        "UV_EXTRA_INDEX_URL=http://more/simple",
        "UV_FIND_LINKS=/a,/b",
        "UV_INSECURE_HOST=own",
    ):
        assert line in done.stdout.splitlines()


def test_what_is_said_for_uv_counts_for_pip_and_never_against_pips_own(image: Image) -> None:
    done = image.run(
        *("--packages", "name", "--", "vllm"),
        UV_INDEX_URL="http://uv/simple",
        UV_EXTRA_INDEX_URL="http://uv/more",
        PIP_EXTRA_INDEX_URL="http://pip/more",
    )
    output = done.stdout.splitlines()
    assert "PIP_INDEX_URL=http://uv/simple" in output
    assert "PIP_EXTRA_INDEX_URL=http://pip/more" in output


def test_a_slow_index_has_time_and_what_is_installed_is_listed(image: Image) -> None:
    done = image.run("--packages", "name", "--", "vllm")
    output = done.stdout.splitlines()
    assert "PIP_TIMEOUT=500" in output
    begun = output.index("python -m pip install -- name")
    assert "python -m pip list" in output[begun:]

    image.add("uv", TELLS.format(name="uv"))
    done = image.run("--packages", "name", "--", "vllm")
    output = done.stdout.splitlines()
    assert "UV_HTTP_TIMEOUT=500" in output
    assert f"uv pip list --python {image.bin}/python3" in output


@pytest.mark.parametrize("name", ["PIP_TIMEOUT", "PIP_DEFAULT_TIMEOUT", "UV_HTTP_TIMEOUT"])
def test_the_users_own_time_out_counts(image: Image, name: str) -> None:
    if name.startswith("UV"):
        image.add("uv", TELLS.format(name="uv"))
    done = image.run("--packages", "name", "--", "vllm", **{name: "7"})
    assert f"{name}=7" in done.stdout
    assert "=500" not in done.stdout


def test_a_list_that_cannot_be_made_is_no_reason_to_fail(image: Image) -> None:
    image.add("python3", '#!/bin/sh\ntest "$3" != list && echo $*\n')
    done = image.run("--packages", "name", "--", "vllm")
    assert done.returncode == 0, done.stderr


def test_the_engine_inherits_none_of_the_installers_settings(image: Image) -> None:
    image.add("vllm", "#!/bin/sh\nenv\n")
    done = image.run("--packages", "name", "--", "vllm", UV_INDEX_URL="http://uv/simple")
    after = done.stdout.rpartition("PIP_TIMEOUT=500\n")[2]
    assert "UV_INDEX_URL=http://uv/simple" in after
    assert "PIP_" not in after


@pytest.mark.parametrize(
    ("first", "python"),
    [
        ("#!{bin}/python3.12", "python3.12"),
        ("#! {bin}/env python3.12", "python3.12"),
        ("#!/bin/sh", "python3"),
    ],
)
def test_the_python_is_the_one_that_the_engines_first_line_names(
    image: Image, first: str, python: str
) -> None:
    image.add("python3.12", '#!/bin/sh\necho "python3.12 $*"\n')
    image.add("vllm", first.format(bin=image.bin) + "\n")
    done = image.run("--packages", "name", "--", "vllm")
    name = "python3.12" if python == "python3.12" else "python"
    assert f"{name} -m pip install -- name" in done.stdout


@pytest.mark.parametrize(
    ("programs", "words", "status", "text"),
    [
        ({"python3": "exit 1"}, ("--packages", "a b", "--", "vllm"), 90, "neither uv nor pip"),
        ({"uv": "exit 2"}, ("--packages", "a b", "--", "vllm"), 91, "not be installed: a b"),
        ({"python3": "test $2$3 != pipinstall"}, ("--packages", "a", "--", "vllm"), 91, "not be"),
        ({}, ("--", "gone"), 127, "gone is not in the image"),
    ],
)
def test_what_fails_says_so_in_one_line_and_starts_nothing(
    image: Image, programs: dict[str, str], words: tuple[str, ...], status: int, text: str
) -> None:
    for name, body in programs.items():
        image.add(name, f"#!/bin/sh\n{body}\n")
    done = image.run(*words)
    assert done.returncode == status
    line = done.stderr.splitlines()[-1]
    assert line.startswith("moorage-prepare: error: ")
    assert text in line
    assert "engine" not in done.stdout
