from __future__ import annotations

import os

import pytest

from penstock import LocalError, UrlError
from penstock.spark.options import SinkOptions, SourceOptions

JOURNAL = {"journal": "data/flights"}
SINK = {"url": "rsocket+tcp://127.0.0.1:7878", "route": "delays"}


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
        ({**JOURNAL, "maxBytesPerTrigger": "0"}, "at least 1 byte"),
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
        ({**JOURNAL, "journalTimeout": "soon"}, "a time such as 60, 60s or 5m"),
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


def test_sink_defaults() -> None:
    options = SinkOptions.parse({**SINK, "delivery": "at-least-once"})
    assert (options.kind, options.data_column, options.metadata_column) == ("channel", None, None)


def test_sink_ignores_what_spark_adds() -> None:
    assert SinkOptions.parse({**SINK, "checkpointlocation": "/c", "queryname": "delays"}) == SinkOptions.parse(SINK)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"route": "delays"}, '"url" is missing'),
        ({"url": SINK["url"]}, '"route" is missing'),
        ({**SINK, "delivery": "transactional"}, "at-least-once; the metadata"),
        ({**SINK, "delivery": "exactly-once"}, "must be at-least-once"),
        ({**SINK, "kind": "call"}, "channel or fire"),
        ({**SINK, "dataCollumn": "x"}, 'did you mean "dataColumn"'),
        ({**SINK, "journal": "x"}, 'has no option "journal" here'),
    ],
)
def test_mistakes_in_a_sink_are_explained(options: dict[str, str], message: str) -> None:
    with pytest.raises(LocalError, match=message):
        SinkOptions.parse(options)


def test_a_url_with_a_typo_is_seen_before_anything_runs() -> None:
    with pytest.raises(UrlError, match="did you mean 'rsocket'"):
        SinkOptions.parse({**SINK, "url": "rsoket+tcp://127.0.0.1:7878"})
