"""Places in a journal, as options name them: where a query starts, and where a batch ends.

A place is a position, "earliest", "latest", or a time in ISO 8601 with its zone: that of the first row received since.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from ..errors import LocalError
from ..journal.layout import check_name
from ..strict_json import RepeatedName, strict_json

__all__ = ["ENDS", "STARTS", "PlaceOptions", "Start", "check_places", "is_future", "is_time", "place_in"]

Start = str | dict[str, int | str]
"""Where reading starts or ends: a place other than a position, or for each source one of these or a position."""

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST: Final = EPOCH + timedelta(milliseconds=10**11)
"""In 1973. Fewer milliseconds are a time in seconds, which is so small until the year 5138."""


@dataclass(frozen=True, slots=True)
class PlaceOptions:
    """The three options of which one says where a query starts or ends."""

    offsets: str
    """A place, or JSON with positions by source."""
    timestamp: str
    """A time for all sources."""
    by_timestamp: str
    """JSON with times by source."""
    default: str
    """The place without any of them, and of sources that are not in the JSON."""

    @property
    def names(self) -> tuple[str, str, str]:
        """The names of these options."""
        return self.offsets, self.timestamp, self.by_timestamp

    def parse(self, given: Callable[[str, Callable[[str], Start | None], None], Start | None]) -> tuple[str, Start]:
        """Return the name of the option that was given, and its value; `LocalError` if there are two.

        `given` returns the parsed value of an option, or its third argument if it was not passed.
        """
        parsers = (self._offsets, _time, _times)
        values = [(name, given(name, parser, None)) for name, parser in zip(self.names, parsers, strict=True)]
        found = [(name, value) for name, value in values if value is not None]
        if len(found) > 1:
            raise LocalError(f'options "{found[0][0]}" and "{found[1][0]}" exclude each other; give one of them')
        return found[0] if found else (self.offsets, self.default)

    def name_of(self, places: Start) -> str:
        """Return the name of the option that names sources in this way, for errors."""
        times = not isinstance(places, str) and all(
            isinstance(place, str) and is_time(place) for place in places.values()
        )
        return self.by_timestamp if times else self.offsets

    def _offsets(self, text: str) -> Start:
        """Return a keyword, or JSON with one for each source."""
        hint = 'it must be earliest, latest, or JSON such as {"flights": 1000}'
        text = text.strip()
        places = text if text in ("earliest", "latest") else _by_source(text, hint, _position)
        if self.default == "latest" and (
            places == "earliest" or (isinstance(places, dict) and "earliest" in places.values())
        ):
            raise ValueError("a read cannot end at the earliest position; use latest, or a position for each source")
        return places


STARTS: Final = PlaceOptions("startingOffsets", "startingTimestamp", "startingOffsetsByTimestamp", "earliest")
ENDS: Final = PlaceOptions("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp", "latest")


def place_in(places: Start, source: str, otherwise: str) -> int | str:
    """Return the place in one source; `otherwise` if the source is not named."""
    return places if isinstance(places, str) else places.get(source, otherwise)


def is_time(text: str) -> bool:
    """Return True if a text is a time as in offsets: ISO 8601, with its zone."""
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def is_future(places: Start) -> bool:
    """Return True if one of these places is a time that has not come yet."""
    found = [places] if isinstance(places, str) else places.values()
    now = datetime.now(UTC)
    return any(isinstance(place, str) and is_time(place) and datetime.fromisoformat(place) > now for place in found)


def _by_source(text: str, hint: str, parse: Callable[[str, object], int | str]) -> dict[str, int | str]:
    try:
        places = strict_json(text)
    except RepeatedName:
        raise
    except ValueError:
        raise ValueError(hint) from None
    if not isinstance(places, dict) or not places:
        raise ValueError(hint)
    return {check_name(source, "source"): parse(source, place) for source, place in places.items()}


def _position(source: str, place: object) -> int | str:
    if isinstance(place, str) and place in ("earliest", "latest"):
        return place
    if type(place) is int and place >= 0:
        return place
    raise ValueError(f"source {source!r}: a position is a whole number from 0 on, earliest or latest")


def _times(text: str) -> Start:
    hint = 'it must be JSON such as {"flights": "2026-01-31T12:00:00Z"} or {"flights": 1769860800000}'
    return _by_source(text, hint, lambda source, value: _time(str(value), f"source {source!r}: "))


def _time(text: str, where: str = "") -> str:
    """Return a time in UTC; the text is ISO 8601 with a zone, or milliseconds since 1970."""
    text = text.strip()
    time = _parsed(text)
    if time is None:
        raise ValueError(f"{where}it must be a time such as 2026-01-31T12:00:00Z, or milliseconds since 1970")
    if text.isdigit() and EPOCH < time < _EARLIEST:
        raise ValueError(
            f"{where}{text} milliseconds after 1970 are in {time.year}, when there was no log; if these are seconds, "
            f"write {text}000"
        )
    if time.tzinfo is None:
        raise ValueError(f"{where}a time needs its zone, such as {time.isoformat()}Z or {time.isoformat()}+02:00")
    return time.isoformat()


def _parsed(text: str) -> datetime | None:
    """Return a time in UTC, or one without a zone; None if the text is not a time."""
    with suppress(ValueError, OverflowError):
        if text.isascii() and text.isdigit():
            return EPOCH + timedelta(milliseconds=int(text))
        time = datetime.fromisoformat(text)
        return time if time.tzinfo is None else time.astimezone(UTC)
    return None


def check_places(option: str, places: Start, read: Callable[[str], bool], names: Collection[str]) -> None:
    """Refuse places in sources that are not read, such as a mistyped name; `names` describes those that are."""
    for source in places if isinstance(places, Mapping) else ():
        if not read(source):
            raise LocalError(f'option "{option}" names source {source!r}, which is not read: {", ".join(names)}')
