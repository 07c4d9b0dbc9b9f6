"""GPUStack's choice of a host, by its selector and scorer for vLLM, on a fleet from stdin.

Runs in a Python with GPUStack 2.3, without this project: `benchmarks.claiming --peer PYTHON` calls
it. It reads the bytes that a model needs, and for each host its RAM, the memory of its accelerators
and the claimed memory by index:

    {"bytes": 1, "hosts": [{"ram": 1, "memory": [1], "held": {"0": 1}}]}

It prints the milliseconds of processor time of several runs. GPUStack's time for its database and
for reading the model's configuration is left out.
"""

import asyncio
import json
import sys
import time
from typing import Any

from gpustack.policies.candidate_selectors.vllm_resource_fit_selector import (
    VLLMResourceFitSelector,
)
from gpustack.policies.resource_view import ResourceView
from gpustack.policies.scorers.placement_scorer import PlacementScorer
from gpustack.schemas.models import ComputedResourceClaim, Model, ModelInstance
from gpustack.schemas.workers import (
    GPUDeviceStatus,
    MemoryInfo,
    SystemReserved,
    Worker,
    WorkerStateEnum,
    WorkerStatus,
)

REPETITIONS = 3


class Config:
    """The only setting that the selector reads."""

    huggingface_token = None


class Selector(VLLMResourceFitSelector):  # type: ignore[misc]  # not installed where mypy runs
    """The selector for a model whose configuration is already read."""

    async def _init_model_parameters(self, _workers: list[Worker]) -> None:
        self._num_attention_heads = 64
        self._set_gpu_memory_utilization()


async def main() -> None:
    """Read, measure and print."""
    question = json.load(sys.stdin)
    workers = [_worker(at, host) for at, host in enumerate(question["hosts"], 1)]
    instances = [
        _instance(at, int(index), held)
        for at, host in enumerate(question["hosts"], 1)
        for index, held in host["held"].items()
    ]
    model = Model(
        name="bench",
        source="local_path",
        local_path="/models/bench",
        env={"GPUSTACK_MODEL_VRAM_CLAIM": str(question["bytes"])},
        cluster_id=1,
    )
    runs = []
    for _ in range(REPETITIONS):
        begin = time.process_time()
        view = ResourceView(instances)
        selector = Selector(Config(), model, instances, resource_view=view)
        candidates = await selector.select_candidates(workers)
        scored = await PlacementScorer(model, instances, resource_view=view).score(candidates)
        best = max(scored, key=lambda one: one.score)
        runs.append((time.process_time() - begin) * 1e3)
    print(json.dumps({"ms": runs, "candidates": len(scored), "best": best.worker.name}))


def _worker(number: int, host: dict[str, Any]) -> Worker:
    devices = [
        GPUDeviceStatus(
            vendor="nvidia",
            type="cuda",
            index=index,
            name="NVIDIA H100 80GB HBM3",
            memory=MemoryInfo(total=total, used=0),
        )
        for index, total in enumerate(host["memory"])
    ]
    return Worker(
        id=number,
        name=f"host-{number - 1:05}",
        hostname="host",
        ip="127.0.0.1",
        ifname="eth0",
        port=10150,
        cluster_id=1,
        state=WorkerStateEnum.READY,
        system_reserved=SystemReserved(ram=0, vram=0),
        status=WorkerStatus(gpu_devices=devices, memory=MemoryInfo(total=host["ram"], used=0)),
    )


def _instance(worker: int, index: int, held: int) -> ModelInstance:
    return ModelInstance(
        name=f"held-{worker}-{index}",
        model_id=2,
        model_name="other",
        worker_id=worker,
        gpu_indexes=[index],
        computed_resource_claim=ComputedResourceClaim(ram=0, vram={index: held}),
    )


if __name__ == "__main__":
    asyncio.run(main())
