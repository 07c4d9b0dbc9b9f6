"""Arguments of an engine's command line by version, and the check of the user's arguments."""
