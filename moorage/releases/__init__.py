"""The release: its record, its states, its timeline, its requester."""
