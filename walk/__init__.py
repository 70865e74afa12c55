"""How far a call walks through the sources, and how the sources hang together: ``make walk``, or ``python -m walk``.

It prints each number next to its limit, and fails when one has grown.

* `calls.py` traces one warm call of each protocol, in a process of its own on the plain build.
* `trips.py` cuts such a trace into trips and counts them.
* `sources.py`, `circles.py`, `names.py` and `shape.py` read the sources without running them.
* `rows.py` puts the numbers together; `limits.toml` holds the limits, and `limits.py` compares.
"""
