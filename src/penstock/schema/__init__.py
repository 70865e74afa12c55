"""Types and JSON Schema: what data must look like, and how it is read and written. May import top files and msgspec."""
