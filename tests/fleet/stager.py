"""A process that stages models, to be killed: `python -m tests.fleet.stager`, jobs on its input."""

from __future__ import annotations

import json
import sys
import threading
from typing import Any

from moorage.adapters.transfer.host_store import HostStore
from moorage.inventory.access import parse_access
from moorage.models.source import ResolvedModel
from tests.fleet.sites import HELPER
from tests.fleet.stores import stage


def main() -> None:
    jobs = [json.loads(line) for line in sys.stdin]
    threads = [threading.Thread(target=_stage, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()


def _stage(job: dict[str, Any]) -> None:
    store = HostStore(parse_access(job["access"]), HELPER, job["folder"])
    print(stage(store, ResolvedModel.model_validate(job["model"]), job["hub"]), flush=True)


if __name__ == "__main__":
    main()
