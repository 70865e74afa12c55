"""The RSocket family: one engine for three dialects. May import the top files, `wire` and `core`."""
