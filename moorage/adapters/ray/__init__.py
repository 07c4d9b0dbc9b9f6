"""Ray clusters, through the REST API of their dashboard."""
