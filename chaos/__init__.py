"""The chaos laboratory: real processes from publisher to Parquet, killed, stopped, starved and cut off by a seed.

``python -m chaos`` builds the whole pipeline six times, once for each protocol and codec, breaks it for some minutes,
lets it heal, and has an oracle read everything that is left. Each fault is drawn from the seed. The clock of a real
machine is not: the same seed gives the same faults in the same order, at about the same moments.
"""
