"""The releases of NVIDIA's Triton image with the vLLM backend: its vLLM, and its CUDA.

Source: `docs/introduction/compatibility.md` of the Triton server, container `vllm-python-py3`.
"""

from typing import NamedTuple


class TritonRelease(NamedTuple):
    """What is in the image of one release."""

    vllm: str
    cuda: str


TRITON_RELEASES: dict[str, TritonRelease] = {
    "26.08": TritonRelease("0.27.1", "13.4"),
    "26.07": TritonRelease("0.24.0", "13.3"),
    "26.06": TritonRelease("0.22.1", "13.3"),
    "26.05": TritonRelease("0.19.0", "13.2"),
    "26.04": TritonRelease("0.19.0", "13.2"),
    "26.03": TritonRelease("0.17.1", "13.2"),
    "26.02": TritonRelease("0.15.1", "13.1"),
    "26.01": TritonRelease("0.13.0", "13.1"),
    "25.12": TritonRelease("0.11.1", "13.1"),
    "25.11": TritonRelease("0.11.0", "13.0"),
    "25.10": TritonRelease("0.10.2", "13.0"),
    "25.09": TritonRelease("0.10.1.1", "13.0"),
    "25.08": TritonRelease("0.9.2", "13.0"),
}
"""By the name of the release, the newest first."""


def vllm_of(release: str) -> str:
    """The version of vLLM in a release; empty = not known."""
    found = TRITON_RELEASES.get(release)
    return found.vllm if found else ""
