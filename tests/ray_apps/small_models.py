"""Applications for a Ray cluster: one that answers as a model does, and one without any."""

# No annotations of the future: FastAPI reads these where Ray has unpickled them.

import json
import os
import time
from pathlib import Path
from typing import Annotated, Any, cast

from fastapi import Body, FastAPI
from ray import serve

api = FastAPI()


@serve.deployment(
    ray_actor_options={"num_cpus": 0.1},
    graceful_shutdown_timeout_s=60,
    max_constructor_retry_count=1,
)
@serve.ingress(api)
class SmallModel:
    """Answers with the architecture of its model; `broken` is what it dies of instead."""

    def __init__(self, path: str, name: str, broken: str = "") -> None:
        if broken:
            raise ValueError(broken)
        self.name = name
        (self.architecture,) = json.loads(Path(path, "config.json").read_text())["architectures"]

    @api.get("/v1/models")
    def models(self) -> dict[str, Any]:
        return {"object": "list", "data": [{"id": self.name, "object": "model"}]}

    @api.post("/v1/chat/completions")
    def chat(self, body: Annotated[dict[str, Any], Body()]) -> dict[str, Any]:
        limit = body.get("max_tokens", 4)
        message = {"role": "assistant", "content": self.architecture}
        choice = {"index": 0, "finish_reason": "length", "message": message}
        usage = {"prompt_tokens": 1, "completion_tokens": limit, "total_tokens": limit + 1}
        named = {"id": "chat", "object": "chat.completion", "created": 0, "model": self.name}
        return {**named, "choices": [choice], "usage": usage}

    @api.get("/slow")
    def slow(self, seconds: float) -> str:
        time.sleep(seconds)
        return self.name


@serve.deployment(ray_actor_options={"num_cpus": 0.1})
class Bystander:
    """Says who it is: a process and a word, and what its environment holds."""

    def __init__(self, word: str) -> None:
        self.word = word

    def __call__(self) -> dict[str, object]:
        return {"pid": os.getpid(), "word": self.word, "kept": os.environ.get("KEPT", "")}


def model(args: dict[str, Any]) -> serve.Application:
    # Type checkers take a class for what it was before its decorators.
    return cast(serve.Deployment, SmallModel).bind(**args)


def bystander(args: dict[str, Any]) -> serve.Application:
    return cast(serve.Deployment, Bystander).bind(**args)
