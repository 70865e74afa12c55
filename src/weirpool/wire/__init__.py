"""Codecs: pure functions that convert bytes to frames and back. May import the top files and `values`."""
