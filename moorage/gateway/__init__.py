"""One address for all models: routes from model names to releases, and Envoy's configuration."""
