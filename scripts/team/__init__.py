"""A server for a team, without containers: `make up` and `make down`."""
