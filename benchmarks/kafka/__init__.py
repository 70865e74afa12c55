"""Compares the way from a source to Spark with Kafka's on the same machine: ``python -m benchmarks kafka``.

* `java/` has a producer and Spark with its Kafka source; `programs.py` builds them with Maven, and `broker.py` runs the
  broker.
* `chains.py` has both ways: a publisher, a collector with its journal, and Spark; a producer, a broker, and Spark.
* `costs.py` measures the CPU time of each process, and `delays.py` the time from an event to Spark's Parquet sink.
* `cold.py` measures the commands of both sides from their start to their end, with the start of their runtimes.
* `comparison.py` runs all of it in turns.
"""
