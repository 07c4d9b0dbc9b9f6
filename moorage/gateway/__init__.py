"""One address for all models: who answers for a name, and Envoy's configuration that says so."""
