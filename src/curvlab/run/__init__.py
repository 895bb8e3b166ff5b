"""One run, from a configuration to its result."""
