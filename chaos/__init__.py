"""Fault injection for the whole pipeline, from publisher to Parquet, in real processes.

``python -m chaos`` starts the pipeline six times, once for each protocol and codec. It injects faults for some minutes,
lets the pipeline recover, and checks all results. The seed determines the faults and their order, but not their exact
times, which depend on the machine.
"""
