"""A test kit of the Reactive Streams rules, for services and clients of any protocol. May import everything public.

:func:`check_publisher` asks a server for streams as no ordinary client would, and says which rules it keeps;
:func:`check_subscriber` serves a stream to a client and does the same. Both speak the protocol through its session,
so that they see what an ordinary peer forgives: too many items, signals after the end, requests after a cancel.
"""

from __future__ import annotations

from .publisher import PUBLISHER_RULES, Published, check_publisher
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
]
