"""The RSocket family: one implementation of three dialects. May import the top files, `wire` and `core`."""
