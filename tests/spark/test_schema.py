from __future__ import annotations

import pickle

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from tests.journal.arrow import tabulate
from weirpool import LocalError
from weirpool.spark.schema import COLUMNS, Projection

from .journals import items


def rows(count: int) -> pa.RecordBatch:
    return tabulate(items(0, count), "flights", 0, 1_000_000)


def chosen(*names: str) -> StructType:
    return StructType([COLUMNS[name] for name in names])


def test_batches_have_exactly_the_types_that_spark_wants() -> None:
    batch = Projection(COLUMNS).apply(rows(3), "a")
    batch.validate(full=True)
    assert batch.schema.equals(to_arrow_schema(COLUMNS, timezone="UTC"))


def test_columns_come_in_the_order_that_was_asked_for() -> None:
    batch = Projection(chosen("data", "source")).apply(rows(2), "a")
    assert batch.to_pylist() == [{"data": b"item 0", "source": "a"}, {"data": b"item 1", "source": "a"}]


def test_columns_that_cannot_be_null_may_be_declared_so() -> None:
    schema = StructType([StructField("position", LongType(), nullable=False)])
    assert Projection(schema).apply(rows(2), "a").schema.equals(to_arrow_schema(schema, timezone="UTC"))


def test_each_source_has_its_name_whatever_the_size_of_its_batches() -> None:
    projection = Projection(chosen("source"))
    for source, count in [("a", 3), ("b", 1), ("a", 100), ("a", 0), ("b", 7)]:
        assert projection.apply(rows(count), source).column(0).to_pylist() == [source] * count


def test_survives_pickling_without_what_it_remembers() -> None:
    projection = Projection(chosen("source", "position"))
    projection.apply(rows(1000), "a")
    pickled = pickle.dumps(projection)
    assert len(pickled) < 2000
    assert pickle.loads(pickled).apply(rows(2), "b").to_pylist()[1] == {"source": "b", "position": 1}


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (StructField("possition", LongType()), "did you mean 'position'"),
        (StructField("zzz", LongType()), "the columns are source, position"),
        (StructField("position", IntegerType()), "'position' is of type bigint, not int"),
        (StructField("data", StringType()), "then cast it"),
        (StructField("metadata", COLUMNS["metadata"].dataType, nullable=False), "cannot be NOT NULL"),
    ],
)
def test_other_columns_are_refused(field: StructField, message: str) -> None:
    with pytest.raises(LocalError, match=message):
        Projection(StructType([field]))


def test_no_columns_are_refused() -> None:
    with pytest.raises(LocalError, match="without columns"):
        Projection(StructType([]))
