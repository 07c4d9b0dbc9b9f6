from __future__ import annotations

from moorage.adapters.docker_arguments import container_arguments
from moorage.launch import Flag, Preparation
from moorage.values import Origin
from tests.builders import a_container

COMMAND = (Flag(tokens=("vllm", "serve", "/m"), origin=Origin.DERIVED, reason=""),)


def test_a_container_starts_with_the_engine_itself() -> None:
    found = container_arguments(a_container(command=COMMAND), {})
    assert (found["entrypoint"], found["command"]) == (["vllm"], ["serve", "/m"])


def test_a_script_comes_first_as_an_argument_of_sh_with_its_words_before_the_engines() -> None:
    wish = Preparation(packages=("a==1", "b"), without_cuda_compat=True)
    found = container_arguments(a_container(command=COMMAND, preparation=wish), {})
    option, script, *words = found["command"]
    assert (found["entrypoint"], option) == (["/bin/sh"], "-c")
    assert 'exec "$@"' in script
    assert words == [
        *("moorage-prepare", "--packages", "a==1 b", "--without-cuda-compat", "--"),
        *("vllm", "serve", "/m"),
    ]
