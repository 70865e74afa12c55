from __future__ import annotations

import pytest

from weirpool.spark.hadoop import hadoop_paths, hadoop_uri

NAME = "source=s/1.parquet"


@pytest.mark.parametrize(
    ("store", "root"),
    [
        ("/data/a b", "file:///data/a b"),
        ("/data/x%41/ü", "file:///data/x%41/ü"),
        ("s3://bucket/a%20b/%C3%BC", "s3a://bucket/a b/ü"),
        ("s3://bucket/prefix?endpoint=http://127.0.0.1:9&region=eu", "s3a://bucket/prefix"),
        ("s3://bucket", "s3a://bucket"),
        ("gs://bucket/x/", "gs://bucket/x"),
        ("az://account/container/x", "abfss://container@account.dfs.core.windows.net/x"),
        ("az://account/container", "abfss://container@account.dfs.core.windows.net"),
        ("hdfs://host:9000/x", "hdfs://host:9000/x"),
    ],
)
def test_stores_have_names_in_hadoop(store: str, root: str) -> None:
    assert hadoop_uri(store) == root
    assert hadoop_uri(store, NAME) == f"{root}/{NAME}"


def test_no_name_is_a_pattern() -> None:
    assert hadoop_paths("/a[1]/b*", [NAME]) == [rf"file:///a\[1\]/b\*/{NAME}"]
