"""Types and JSON Schema: reading, writing and validating data. May import the top files, `values` and msgspec."""
