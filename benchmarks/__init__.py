"""How fast Penstock is, next to others, in one run: ``make bench``, or ``python -m benchmarks --help``.

Machines differ, and one machine differs from hour to hour: what counts here are ratios within a run. Every
scenario is run by each peer in turns, some rounds of about equal length, and medians are compared.

* `peers/` has one module an implementation, each with a server and a client that do the same work.
* `worker.py` is the process that a server or a client runs in; `processes.py` starts it and speaks to it.
* `network.py` are the scenarios over loopback, `codec.py` frames alone, `packed.py` numbers that travel packed
  next to a copy of their bytes, `journal_to_spark.py` the way into Spark.
* `river.py` are those of River; its peers are programs of `interop/`, and are fetched as there.
* `against.py` compares the working tree with a revision: `trees.py` builds both, `ratios.py` judges.
* `report.py` prints the tables, and writes the numbers to `results/`.
"""
