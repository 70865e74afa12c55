"""Compares the speed of Weirpool with other implementations: ``make bench``, or ``python -m benchmarks --help``.

The speed of a machine varies over time, so only ratios within a run are meaningful. The peers take turns at each
scenario, in several rounds of about equal length, and medians are compared.

* `peers/` has one module per implementation, each with a server and a client that do the same work.
* `worker.py` is the process of a server or a client; `processes.py` starts it and talks to it.
* `network.py` measures over loopback, `codec.py` only frames, `packed.py` packed numbers against a copy of their
  bytes, and `journal_to_spark.py` reading a journal by Spark.
* `collect.py` measures the CPU time of each step from a socket to Spark, beside its goal; `usage.py` reads it from
  Linux's /proc.
* `kafka/` compares the way from a source to Spark with Kafka's.
* `river.py` measures River; its peers are programs of `interop/`, which also installs them.
* `against.py` compares the working tree with a revision: `trees.py` builds both, `ratios.py` compares the results.
* `report.py` prints the tables, and writes the results to `results/`.
"""
