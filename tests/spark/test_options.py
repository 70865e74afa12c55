from __future__ import annotations

import os

import pytest

from weirpool import LocalError
from weirpool.spark.options import SourceOptions

JOURNAL = {"journal": "data/flights"}
EMBEDDED = {**JOURNAL, "url": "rsocket+tcp://h:1", "route": "flights"}


def test_journal_alone_is_enough() -> None:
    options = SourceOptions.parse(JOURNAL)
    assert options.journal == os.path.abspath("data/flights")
    assert (options.sources, options.starting, options.ending) == (None, "earliest", "latest")
    assert options.fail_on_data_loss and options.trim
    assert (options.reader, options.gaps, options.fail_on_gap, options.journal_timeout) == (None, False, False, 60.0)


def test_load_with_a_path_names_the_journal() -> None:
    assert SourceOptions.parse({"path": "/data/flights"}).journal == "/data/flights"


def test_a_uri_stays_as_it_is() -> None:
    options = SourceOptions.parse({"journal": "s3://bucket/flights"})
    assert options.journal == "s3://bucket/flights" and options.remote


def test_the_uri_of_a_file_is_its_path() -> None:
    options = SourceOptions.parse({"journal": "file:///data/flights"})
    assert options.journal == "/data/flights" and not options.remote


def test_names_are_of_any_case() -> None:
    assert SourceOptions.parse({**JOURNAL, "MAXROWSPERTRIGGER": "7"}).max_rows == 7


def test_all_values_are_understood() -> None:
    options = SourceOptions.parse(
        {
            **JOURNAL,
            "source": "a, b,a",
            "startingOffsets": '{"a": 5, "b": "latest"}',
            "endingOffsets": '{"a": 9}',
            "maxRowsPerTrigger": "100",
            "maxBytesPerTrigger": "64m",
            "partitions": "3",
            "rowsPerPartition": "1000",
            "rows": "items",
            "failOnDataLoss": "FALSE",
            "failOnGap": "true",
            "journalTimeout": "1.5m",
            "reader": "delays",
            "trim": "false",
            "retainBytes": "0",
        }
    )
    assert options.sources == ("a", "b")
    assert (options.starting, options.ending) == ({"a": 5, "b": "latest"}, {"a": 9})
    assert (options.max_rows, options.max_bytes) == (100, 64 * 1024 * 1024)
    assert (options.partitions, options.rows_per_partition) == (3, 1000)
    assert (options.fail_on_data_loss, options.trim) == (False, False)
    assert (options.gaps, options.fail_on_gap, options.journal_timeout) == (False, True, 90.0)
    assert (options.reader, options.retain_bytes) == ("delays", 0)


def test_triggers_and_partitions_have_the_names_of_kafka_s_source() -> None:
    options = SourceOptions.parse(
        {**JOURNAL, "minRowsPerTrigger": "10", "maxTriggerDelay": "2m", "minPartitions": "40", "sourcePattern": "fl.*"}
    )
    assert (options.min_rows, options.max_delay, options.min_partitions) == (10, 120.0, 40)
    assert options.reads("flights") and not options.reads("a-flight")
    assert (SourceOptions.parse(JOURNAL).min_rows, SourceOptions.parse(JOURNAL).max_delay) == (None, 900.0)


def test_a_start_and_an_end_may_be_times() -> None:
    options = SourceOptions.parse(
        {
            **JOURNAL,
            "startingTimestamp": "1769860800000",
            "endingOffsetsByTimestamp": '{"a": "2026-02-01T00:00:00Z"}',
            "startingOffsetsByTimestampStrategy": "error",
        }
    )
    assert options.starting == "2026-01-31T12:00:00+00:00"
    assert options.ending == {"a": "2026-02-01T00:00:00+00:00"}
    assert options.require_rows_since and not SourceOptions.parse(JOURNAL).require_rows_since


@pytest.mark.parametrize(("text", "seconds"), [("0", 0.0), ("60", 60.0), ("2.5 s", 2.5), ("5m", 300.0), ("1H", 3600.0)])
def test_times(text: str, seconds: float) -> None:
    assert SourceOptions.parse({**JOURNAL, "journalTimeout": text}).journal_timeout == seconds


@pytest.mark.parametrize(
    ("text", "size"), [("1", 1), ("2k", 2048), ("3 MiB", 3 << 20), ("1gb", 1 << 30), ("1T", 1 << 40)]
)
def test_sizes(text: str, size: int) -> None:
    assert SourceOptions.parse({**JOURNAL, "maxBytesPerTrigger": text}).max_bytes == size


def test_embedded_collector_writes_to_the_source_of_its_route() -> None:
    options = SourceOptions.parse({**JOURNAL, "url": "rsocket+tcp://h:1", "route": "flights", "data": "é"})
    assert options.sources == ("flights",)
    assert options.data == "é".encode()
    assert SourceOptions.parse({**JOURNAL, "url": "rsocket+tcp://h:1", "route": "a/b", "source": "x"}).sources == ("x",)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, '"journal" is missing'),
        ({"paths": '["a", "b"]'}, "one journal at a time"),
        ({"journal": " "}, "must not be empty"),
        ({**JOURNAL, "maxRowPerTrigger": "5"}, 'did you mean "maxRowsPerTrigger"'),
        ({**JOURNAL, "zzz": "5"}, "the options are"),
        ({**JOURNAL, "maxRowsPerTrigger": "0"}, "\"maxRowsPerTrigger\" is '0'; it must be a whole number"),
        ({**JOURNAL, "maxRowsPerTrigger": "-1"}, "whole number"),
        ({**JOURNAL, "maxRowsPerTrigger": "many"}, "whole number"),
        ({**JOURNAL, "maxBytesPerTrigger": "0"}, "a size in bytes"),
        ({**JOURNAL, "maxBytesPerTrigger": "1.5m"}, "such as"),
        ({**JOURNAL, "failOnDataLoss": "yes"}, "true or false"),
        ({**JOURNAL, "source": "a/b"}, "'a/b' cannot name a source"),
        ({**JOURNAL, "source": "a,,b"}, "'' cannot name a source"),
        ({**JOURNAL, "reader": "a b"}, "cannot name a reader"),
        ({**JOURNAL, "startingOffsets": "early"}, "earliest, latest, or JSON"),
        ({**JOURNAL, "startingOffsets": "[1]"}, "earliest, latest, or JSON"),
        ({**JOURNAL, "startingOffsets": "{}"}, "earliest, latest, or JSON"),
        ({**JOURNAL, "startingOffsets": '{"a": -2}'}, "source 'a': a position is"),
        ({**JOURNAL, "startingOffsets": '{"a": true}'}, "source 'a': a position is"),
        ({**JOURNAL, "startingOffsets": '{"a": 1.5}'}, "source 'a': a position is"),
        ({**JOURNAL, "source": "a,b", "startingOffsets": '{"c": 1}'}, "names source 'c', which is not read: a, b"),
        ({**JOURNAL, "source": "a,b", "endingOffsets": '{"c": 1}'}, "\"endingOffsets\" names source 'c'"),
        ({**JOURNAL, "sourcePattern": "a("}, "not a regular expression"),
        ({**JOURNAL, "source": "a", "sourcePattern": "b"}, '"source" and "sourcePattern" exclude each other'),
        ({**EMBEDDED, "sourcePattern": "b"}, '"url" and "sourcePattern" exclude each other'),
        ({**EMBEDDED, "journal": "s3://lake/rows"}, "use a folder of this machine"),
        ({**JOURNAL, "sourcePattern": "a.", "startingOffsets": '{"abc": 1}'}, "not read: those that match a."),
        ({**JOURNAL, "startingTimestamp": "9999-01-01T00:00:00Z"}, '"startingTimestamp" is in the future'),
        ({**JOURNAL, "startingTimestamp": "0", "startingOffsets": "latest"}, "exclude each other"),
        ({**JOURNAL, "endingTimestamp": "0", "endingOffsetsByTimestamp": '{"a": 0}'}, "exclude each other"),
        ({**JOURNAL, "startingOffsetsByTimestampStrategy": "wait"}, "latest or error"),
        ({**JOURNAL, "minRowsPerTrigger": "10", "maxRowsPerTrigger": "9"}, "is 10, more than maxRowsPerTrigger"),
        ({**JOURNAL, "minPartitions": "2", "partitions": "2"}, "exclude each other"),
        ({**JOURNAL, "journalTimeout": "soon"}, "a duration"),
        ({**JOURNAL, "rows": "holes"}, "items or gaps"),
        ({**JOURNAL, "rows": "gaps", "reader": "r"}, 'option "reader" is not valid with rows set to "gaps"'),
        ({**JOURNAL, "rows": "gaps", "startingOffsets": '{"a": 1}'}, "earliest or latest"),
        ({**JOURNAL, "endingOffsets": "earliest"}, "cannot end at the earliest"),
        ({**JOURNAL, "endingOffsets": '{"a": "earliest"}'}, "cannot end at the earliest"),
        ({**JOURNAL, "url": "rsocket+tcp://h:1"}, "go together"),
        ({**JOURNAL, "route": "flights"}, "go together"),
        ({**JOURNAL, "url": "rsocket+tcp://h:1", "route": "r", "source": "a,b"}, "must name the one log"),
        ({**JOURNAL, "url": "rsocket+tcp://h:1", "route": "a/b"}, "cannot name a source"),
    ],
)
def test_mistakes_are_explained_in_one_line(options: dict[str, str], message: str) -> None:
    with pytest.raises(LocalError) as caught:
        SourceOptions.parse(options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
