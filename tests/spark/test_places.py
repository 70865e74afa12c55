from __future__ import annotations

from collections.abc import Callable

import pytest

from weirpool import LocalError
from weirpool.spark.places import ENDS, STARTS, PlaceOptions, Start, check_places, is_future, is_time, place_in

NOON = "2026-01-31T12:00:00+00:00"


def parse(options: PlaceOptions, **given: str) -> tuple[str, Start]:
    def get(name: str, parser: Callable[[str], Start | None], default: None) -> Start | None:
        return parser(given[name]) if name in given else default

    return options.parse(get)


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("2026-01-02T12:00:00+00:00", True),
        ("2026-01-02T12:00:00", False),
        ("latest", False),
        ("", False),
    ],
)
def test_times_have_a_zone(text: str, is_one: bool) -> None:
    assert is_time(text) == is_one


def test_without_an_option_the_default_holds() -> None:
    assert parse(STARTS) == ("startingOffsets", "earliest")
    assert parse(ENDS) == ("endingOffsets", "latest")


def test_each_of_the_three_options_names_places() -> None:
    assert parse(STARTS, startingOffsets='{"a": 5, "b": "latest"}') == ("startingOffsets", {"a": 5, "b": "latest"})
    assert parse(STARTS, startingTimestamp="1769860800000") == ("startingTimestamp", NOON)
    times = '{"a": 1769860800000, "b": "2026-01-31T13:00:00+01:00"}'
    assert parse(ENDS, endingOffsetsByTimestamp=times) == ("endingOffsetsByTimestamp", {"a": NOON, "b": NOON})


def test_only_one_of_them_is_given() -> None:
    with pytest.raises(LocalError, match='"startingOffsets" and "startingTimestamp" exclude each other'):
        parse(STARTS, startingOffsets="latest", startingTimestamp="0")


@pytest.mark.parametrize(
    "text",
    [
        "0",
        "100000000000",
        "1970-01-01T00:00:01Z",
        " 2026-01-31T12:00:00Z ",
        "2026-01-31 12:00+02:00",
        "20260131T120000Z",
    ],
)
def test_times_are_iso_8601_or_milliseconds(text: str) -> None:
    _, time = parse(STARTS, startingTimestamp=text)
    assert isinstance(time, str) and is_time(time) and time.endswith("+00:00")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("soon", "a time such as"),
        ("-1", "a time such as"),
        ("1" * 30, "a time such as"),
        ("0001-01-01T00:00:00+05:00", "a time such as"),
        ("1795810805", "1795810805 milliseconds after 1970 are in 1970, .*; if these are seconds, write 1795810805000"),
        ("1", "are in 1970"),
        ("99999999999", "are in 1973"),
        ("2026-01-31", "needs its zone, such as 2026-01-31T00:00:00Z"),
    ],
)
def test_what_is_no_time_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse(STARTS, startingTimestamp=text)
    with pytest.raises(ValueError, match=f"source 'a': .*{message}"):
        parse(STARTS, startingOffsetsByTimestamp=f'{{"a": "{text}"}}')


@pytest.mark.parametrize("text", ["earliest", '["a"]', "{}", "2026-01-31T12:00:00Z", '{"a": true}', '{"a": null}'])
def test_times_by_source_are_an_object_of_times(text: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        parse(STARTS, startingOffsetsByTimestamp=text)


def test_a_source_is_named_once() -> None:
    for name, text in {
        "startingOffsets": '{"s": 5, "s": 6}',
        "startingOffsetsByTimestamp": '{"s": 1769860800000, "a": 1769860800000, "s": 1769860800000}',
    }.items():
        with pytest.raises(ValueError, match="'s' is there twice"):
            parse(STARTS, **{name: text})


def test_a_read_cannot_end_at_its_beginning() -> None:
    for text in ("earliest", '{"a": "earliest"}'):
        with pytest.raises(ValueError, match="cannot end at the earliest"):
            parse(ENDS, endingOffsets=text)


def test_places_of_sources() -> None:
    assert place_in("latest", "a", "earliest") == "latest"
    assert [place_in({"a": 3}, source, "earliest") for source in "ab"] == [3, "earliest"]


def test_times_to_come() -> None:
    later = "9999-01-01T00:00:00+00:00"
    assert is_future(later) and is_future({"a": 1, "b": later})
    assert not is_future(NOON) and not is_future("latest") and not is_future({"a": 1})


def test_places_in_sources_that_are_not_read_are_refused() -> None:
    check_places("startingOffsets", {"a": 1}, "abc".__contains__, "abc")
    check_places("startingOffsets", "latest", "abc".__contains__, "abc")
    with pytest.raises(LocalError, match="names source 'd', which is not read: a, b, c"):
        check_places("startingOffsets", {"d": 1}, "abc".__contains__, "abc")


def test_the_option_of_places_is_known_by_them() -> None:
    assert STARTS.name_of({"a": 5}) == STARTS.name_of("latest") == "startingOffsets"
    assert ENDS.name_of({"a": NOON}) == "endingOffsetsByTimestamp"
