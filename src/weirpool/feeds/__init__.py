"""Many feeds in one command: configuration, supervision, workers, status and HTTP. May import `journal` and `aio`.

A feed is one stream and the log that it is collected into. A supervisor runs each feed as a task of its own, so that a
bad feed hurts only itself. Statuses flow one way: from feeds to a board, which other threads read.
"""
