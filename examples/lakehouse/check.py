"""Compares the table of quotes with the journal, row by row."""

import sys

from pyspark.sql import SparkSession

journal, warehouse = sys.argv[1:3]

spark = SparkSession.builder.appName("check").config("spark.sql.shuffle.partitions", "4").getOrCreate()
spark.sparkContext.setLogLevel("ERROR")

# Spark reads only the files of complete micro-batches, which the sink has listed.
table = spark.read.parquet(f"{warehouse}/quotes").select("position")
rows = spark.read.format("weirpool").option("source", "quotes").load(journal).select("position")

last = table.agg({"position": "max"}).first()[0]
in_journal = rows.where(f"position <= {last}")
missing = in_journal.exceptAll(table).count()
twice = table.exceptAll(in_journal).count()
print(f"{table.count():,} quotes in the table, {in_journal.count():,} rows in the journal: ", end="")
print("none is missing, none is there twice" if not missing + twice else f"{missing} missing, {twice} too many")
sys.exit(bool(missing + twice))
