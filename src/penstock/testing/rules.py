"""The rules of Reactive Streams 1.0 for the JVM, in our own words, and what of them can be seen across a wire.

The specification has them in three sections: 1 Publisher, 2 Subscriber, 3 Subscription. A rule about calls within one
process, about which thread makes them or what they return, says nothing about what travels, and is not checked.
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["RULES", "Rule", "markdown"]

PUBLISHER: Final = "publisher"
SUBSCRIBER: Final = "subscriber"

_LOCAL: Final = "a call and its return stay within one process"
_OBJECTS: Final = "objects do not travel: each subscription on a wire is a stream of its own"
_TIME: Final = "how long a call takes inside the other process cannot be seen, and no timing is asserted"


class Rule(NamedTuple):
    """One rule.

    Attributes:
        number: Its section and number in the specification.
        text: What it demands.
        side: Whose test it has, "publisher" or "subscriber"; empty where it makes no sense across a wire.
        why_not: Why it does not; else empty.

    """

    number: str
    text: str
    side: str
    why_not: str = ""


def _publisher(number: str, text: str) -> Rule:
    return Rule(number, text, PUBLISHER)


def _subscriber(number: str, text: str) -> Rule:
    return Rule(number, text, SUBSCRIBER)


_ALL: Final = (
    _publisher("1.1", "A publisher sends no more items than were requested."),
    _publisher("1.2", "It may send fewer than were requested, and then says that it completed or failed."),
    _publisher("1.3", "Its signals come one after another, and in order, however requests come."),
    _publisher("1.4", "When it fails, it says so by an error."),
    _publisher("1.5", "When a finite stream has ended, it says so, and needs no demand for it."),
    _publisher("1.6", "A stream that completed or failed counts as canceled: what is asked of it later does nothing."),
    _publisher("1.7", "After completion or error nothing follows."),
    _publisher("1.8", "A canceled stream stops sending in the end."),
    _publisher("1.9", "A subscription is accepted, or refused by an error and by nothing else."),
    _publisher("1.10", "One subscription subscribes once: the same request, said twice, is not served twice."),
    _publisher("1.11", "Several subscribers are served, each by its own demand."),
    _subscriber("2.1", "A subscriber requests items before it gets any, and goes on requesting while it wants more."),
    Rule("2.2", "It does not hold up the publisher by slow work of its own.", "", _TIME),
    _subscriber("2.3", "Told of completion, it calls neither request nor cancel from there."),
    _subscriber("2.4", "After completion or error it counts its subscription as canceled."),
    Rule("2.5", "It cancels a second subscription given to it while the first is active.", "", _OBJECTS),
    _subscriber("2.6", "It cancels when it wants no more."),
    Rule(
        "2.7", "Its calls of request and cancel are made one after another.", "", "one link orders whatever it carries"
    ),
    _subscriber("2.8", "It takes items that were under way when it canceled."),
    _subscriber("2.9", "It takes completion, with or without a request before it."),
    _subscriber("2.10", "It takes an error, with or without a request before it."),
    Rule("2.11", "Signals have been made before they are processed, as memory models say.", "", _LOCAL),
    _subscriber("2.12", "It is subscribed once: one subscription opens one stream."),
    _subscriber("2.13", "It returns in order from any item that is not null, be it empty or large."),
    Rule("3.1", "Request and cancel are called in the subscriber's own context.", "", _LOCAL),
    Rule("3.2", "Request may be called from within the signals of the publisher.", "", _LOCAL),
    Rule("3.3", "Request and item do not call each other without bound.", "", "no call stack crosses a wire"),
    Rule("3.4", "Request returns quickly.", "", _TIME),
    Rule("3.5", "Cancel returns quickly, and may be called again and from any thread.", "", _TIME),
    _publisher("3.6", "After a cancel, further requests do nothing."),
    _publisher("3.7", "After a cancel, further cancels do nothing."),
    _publisher("3.8", "Each request adds to the demand."),
    _publisher("3.9", "A request of 0 items or less is answered by an error."),
    Rule("3.10", "Items may be sent from within request.", "", _LOCAL),
    Rule("3.11", "Completion or error may be sent from within request.", "", _LOCAL),
    _publisher("3.12", "A cancel stops the stream, also one that comes before the first item."),
    _publisher("3.13", "A publisher lets go of canceled subscribers: any number of them leaves room for others."),
    Rule("3.14", "A publisher without subscribers may end itself.", "", "it is allowed, not demanded"),
    Rule("3.15", "Cancel returns in order, and never by an exception.", "", _LOCAL),
    _publisher("3.16", "Any number of requests is taken, and none of them breaks anything."),
    _publisher(
        "3.17", "Demand has no upper bound that matters: the greatest count, requested again, is as good as endless."
    ),
)

RULES: Final[dict[str, Rule]] = {rule.number: rule for rule in _ALL}
"""All rules of the three sections, by number and in order."""


def markdown() -> str:
    """Return the rules as the table that the documentation shows."""
    rows = (f"| {rule.number} | {rule.text} | {rule.side or f'not: {rule.why_not}'} |" for rule in RULES.values())
    return "\n".join(("| rule | what it demands | checked on the |", "|---|---|---|", *rows))
