"""Keeps a table of quotes up to date, from the journal that the collector writes."""

import sys

from pyspark.sql import SparkSession

journal, warehouse = sys.argv[1:3]

spark = SparkSession.builder.appName("quotes").config("spark.sql.session.timeZone", "UTC").getOrCreate()

quotes = (
    spark.readStream.format("weirpool")
    .option("reader", "quotes")
    .option("source", "quotes")
    .option("decode", "json")
    .option("decodeSchema", "symbol STRING, price DOUBLE, at TIMESTAMP")
    .load(journal)
)

query = (
    quotes.selectExpr("position", "symbol", "price", "at", "to_date(at) AS day", "_corrupt")
    .writeStream.format("parquet")
    .option("checkpointLocation", f"{warehouse}/checkpoints/quotes")
    .partitionBy("day")
    .trigger(processingTime="2 seconds")
    .start(f"{warehouse}/quotes")
)
query.awaitTermination()
