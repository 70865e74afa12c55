"""Bytes to frames and back: pure functions, one codec a dialect. May import the top files only."""
