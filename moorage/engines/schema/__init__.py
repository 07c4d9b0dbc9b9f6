"""What an engine's command line accepts, by version, and whether the user's words are that."""
