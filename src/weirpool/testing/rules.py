"""The rules of Reactive Streams 1.0 for the JVM, paraphrased, and which of them can be checked across a wire.

The specification has four sections: 1 Publisher, 2 Subscriber, 3 Subscription, 4 Processor. Rules about calls within
one process, their threads or their return values have no effect on the wire and are not checked.
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["RULES", "Rule", "markdown"]

_LOCAL: Final = "a call and its return stay within one process"
_BOTH: Final = "a processor is a publisher and a subscriber, and each side is checked by itself"
_TIME: Final = "the duration of calls inside the other process is not visible, and no timing is asserted"


class Rule(NamedTuple):
    """One rule.

    Attributes:
        number: The section and number in the specification.
        text: The requirement.
        side: The side that is tested, "publisher" or "subscriber"; empty if the rule has no meaning across a wire.
        why_not: The reason why it is not tested; otherwise empty.

    """

    number: str
    text: str
    side: str
    why_not: str = ""


def _rule(number: str, text: str, why_not: str = "") -> Rule:
    side = "subscriber" if number.startswith("2.") else "publisher"
    return Rule(number, text, "" if why_not else side, why_not)


_ALL: Final = (
    _rule("1.1", "A publisher sends no more items than were requested."),
    _rule("1.2", "It may send fewer items than were requested, and then signals completion or an error."),
    _rule("1.3", "Its signals arrive sequentially and in order, regardless of the requests."),
    _rule("1.4", "When it fails, it signals an error."),
    _rule("1.5", "When a finite stream has ended, it signals completion, without needing demand."),
    _rule("1.6", "A stream that completed or failed counts as canceled: later requests have no effect."),
    _rule("1.7", "Nothing follows completion or an error."),
    _rule("1.8", "A canceled stream eventually stops sending."),
    _rule("1.9", "A subscription is accepted, or refused only by an error."),
    _rule("1.10", "One subscription subscribes once: the same request, sent twice, is not served twice."),
    _rule("1.11", "Several subscribers are served, each according to its own demand."),
    _rule("2.1", "A subscriber requests items before it receives any, and continues to request while it wants more."),
    _rule("2.2", "It does not block the publisher with slow work.", _TIME),
    _rule("2.3", "When completion is signaled, it calls neither request nor cancel."),
    _rule("2.4", "After completion or an error it considers its subscription canceled."),
    _rule("2.5", "It cancels a second subscription while the first is active, or closes the connection."),
    _rule("2.6", "It cancels when it wants no more items."),
    _rule("2.7", "Its calls of request and cancel are sequential.", "a link preserves the order"),
    _rule("2.8", "It accepts items that were in flight when it canceled."),
    _rule("2.9", "It accepts completion, with or without an earlier request."),
    _rule("2.10", "It accepts an error, with or without an earlier request."),
    _rule("2.11", "Signals happen before their processing, in terms of memory models.", _LOCAL),
    _rule("2.12", "It is subscribed once: one subscription opens one stream."),
    _rule("2.13", "It returns normally from any item that is not null, even if it is empty or large."),
    _rule("3.1", "Request and cancel are called in the subscriber's own context.", _LOCAL),
    _rule("3.2", "Request may be called from within the signals of the publisher.", _LOCAL),
    _rule(
        "3.3", "Request and item do not call each other recursively without limit.", "call stacks do not cross a wire"
    ),
    _rule("3.4", "Request returns quickly.", _TIME),
    _rule("3.5", "Cancel returns quickly, and may be called again and from any thread.", _TIME),
    _rule("3.6", "After a cancel, further requests have no effect."),
    _rule("3.7", "After a cancel, further cancels have no effect."),
    _rule("3.8", "Each request adds to the demand."),
    _rule("3.9", "A request of 0 items or less is answered with an error."),
    _rule("3.10", "Items may be sent from within request.", _LOCAL),
    _rule("3.11", "Completion or error may be sent from within request.", _LOCAL),
    _rule("3.12", "A cancel stops the stream, even before the first item."),
    _rule("3.13", "A publisher releases canceled subscribers: any number of them leaves capacity for others."),
    _rule("3.14", "A publisher without subscribers may end itself.", "it is optional"),
    _rule("3.15", "Cancel returns normally and raises no exception.", _LOCAL),
    _rule("3.16", "Any number of requests is accepted."),
    _rule("3.17", "Demand is effectively unbounded: the maximum count, requested again, counts as unlimited."),
    _rule("4.1", "A processor keeps the rules of publishers and of subscribers.", _BOTH),
    _rule("4.2", "A processor may recover from an error; otherwise it cancels and passes the error on.", _BOTH),
)

RULES: Final[dict[str, Rule]] = {rule.number: rule for rule in _ALL}
"""All rules of the four sections, by number and in order."""


def markdown() -> str:
    """Return the rules as a Markdown table, for the documentation."""
    rows = (f"| {rule.number} | {rule.text} | {rule.side or f'not: {rule.why_not}'} |" for rule in RULES.values())
    return "\n".join(("| rule | requirement | tested on |", "|---|---|---|", *rows))
