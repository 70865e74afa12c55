"""Data frames from items and values, and items from data frames. May import the top files, `values` and `decoding`."""
