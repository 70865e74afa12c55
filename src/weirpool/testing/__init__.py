"""A test kit of the Reactive Streams rules, for services and clients of any protocol. May import everything public.

:func:`check_publisher` requests streams from a server in unusual ways and reports which rules it keeps.
:func:`check_subscriber` serves a stream to a client and does the same. Both use the protocol's session directly, so
that they detect what an ordinary peer tolerates: too many items, signals after the end, requests after a cancel.
"""

from __future__ import annotations

from .published import Published, misdescribed
from .publisher import PUBLISHER_RULES, check_publisher
from .results import Result
from .rules import RULES, Rule
from .subscriber import SUBSCRIBER_RULES, Subscribing, check_subscriber

__all__ = [
    "PUBLISHER_RULES",
    "RULES",
    "SUBSCRIBER_RULES",
    "Published",
    "Result",
    "Rule",
    "Subscribing",
    "check_publisher",
    "check_subscriber",
    "misdescribed",
]
