"""Survey: parsers for the output of the probe on a host."""
