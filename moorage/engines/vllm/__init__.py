"""vLLM: its arguments, environment, containers and log patterns."""
