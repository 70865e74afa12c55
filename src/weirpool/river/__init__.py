"""River v2.0: sessions without I/O. May import the top files, `wire` and `core`."""
