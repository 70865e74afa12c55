"""Types and JSON Schema: reading, writing and validating data. May import top files and msgspec."""
