"""The outside world: hub, hosts, runtimes, ledger, HTTP. One noun a file; decisions live above."""

import os

# Else huggingface_hub tells the hub about this machine, and asks it once a day by which agents it
# may be run, even where it may only read local files. It looks when it is imported first.
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
