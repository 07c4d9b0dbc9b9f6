"""vLLM: its arguments, environment, containers and log texts."""
