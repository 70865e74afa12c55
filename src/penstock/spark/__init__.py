"""Spark source and sink. May import the top files and `journal`; `aio` only inside functions."""
