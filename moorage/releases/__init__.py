"""The release: its record, its states, its timeline, who asked for it."""
