from __future__ import annotations

import pytest

from weirpool import LocalError, UrlError
from weirpool.spark.sink_options import SinkOptions

SINK = {"url": "rsocket+tcp://127.0.0.1:7878", "route": "delays"}


def test_sink_defaults() -> None:
    options = SinkOptions.parse({**SINK, "delivery": "at-least-once"})
    assert (options.kind, options.data_column, options.metadata_column) == ("channel", None, None)


def test_all_values_of_a_sink_are_understood() -> None:
    options = SinkOptions.parse(
        {
            **SINK,
            "kind": "call",
            "timeout": "30",
            "idleTimeout": "0",
            "retries": "0",
            "concurrency": "8",
            "maxRowsPerSecond": "100",
            "deadLetters": "/d",
            "maxDeadLetters": "3",
            "token": "t0ken",
            "authenticate": "request",
            "set.max_calls": "8",
        }
    )
    assert (options.kind, options.timeout, options.idle_timeout, options.retries) == ("call", 30.0, None, 0)
    assert (options.concurrency, options.rows_per_second, options.max_dead_letters) == (8, 100, 3)
    assert options.target.each_request and options.target.settings == {"max_calls": 8}
    assert "t0ken" not in repr(options)


def test_sink_ignores_what_spark_adds() -> None:
    assert SinkOptions.parse({**SINK, "checkpointlocation": "/c", "queryname": "delays"}) == SinkOptions.parse(SINK)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"route": "delays"}, '"url" is missing'),
        ({"url": SINK["url"]}, '"route" is missing'),
        ({**SINK, "delivery": "exactly-once"}, "must be at-least-once"),
        ({**SINK, "kind": "stream"}, "channel or upload or call or fire"),
        ({**SINK, "kind": "upload", "delivery": "transactional"}, '"kind" has no effect'),
        ({**SINK, "kind": "fire", "deadLetters": "/d"}, "rejected one by one"),
        ({**SINK, "maxDeadLetters": "5"}, 'has no effect without "deadLetters"'),
        ({**SINK, "concurrency": "5"}, 'has no effect unless "kind" is "call"'),
        ({**SINK, "insecure": "true"}, 'trust the server\'s certificate with "cafile"'),
        ({**SINK, "retries": "-1"}, "a whole number of at least 0"),
        ({**SINK, "set.headers": "Authorization: x"}, '"set.headers" is hidden; headers is not a setting'),
        ({**SINK, "set.credits": "5"}, "\"set.credits\" is '5'; credits is not a setting .* did you mean 'credit'"),
        ({**SINK, "token": " "}, '"token" is hidden'),
        ({**SINK, "user": "ada"}, "a user needs a password"),
        ({**SINK, "password": "geheim"}, "a password needs the name"),
        ({**SINK, "cafile": "ca.pem"}, "not encrypted"),
        ({**SINK, "url": "river+ws://127.0.0.1:1", "token": "t"}, "no place for credentials"),
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
