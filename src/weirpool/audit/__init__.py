"""Digests of what a publisher sent, compared with what a log holds. May import the top files, `aio` and `journal`."""
