"""Measures the paths of calls through the sources, and the structure of the sources: ``make walk``.

``python -m walk`` prints each metric with its limit, and fails if one exceeds its limit.

* `calls.py` traces one warm call of each protocol, in a separate process on the plain build.
* `trips.py` divides such a trace into trips and counts them.
* `sources.py`, `circles.py`, `names.py` and `shape.py` read the sources without running them.
* `rows.py` collects the metrics; `limits.toml` contains the limits, and `limits.py` compares.
"""
