"""The outside world: hub, hosts, runtimes, ledger, HTTP. One noun a file; decisions live above."""
