"""Reactive Streams within one process: publishers and subscribers, and adapters to iterators and peers.

All calls are made in the event loop's thread. May import the top files and `aio`. Only `reactivex` imports the package
of that name, from the extra `reactive`, inside functions.
"""

from __future__ import annotations

from .handlers import publishing
from .interfaces import Processor, Publisher, Subscriber, Subscription
from .iteration import from_aiter, to_aiter
from .reactivex import Policy, from_observable, to_observable
from .remote import publisher_of

__all__ = [
    "Policy",
    "Processor",
    "Publisher",
    "Subscriber",
    "Subscription",
    "from_aiter",
    "from_observable",
    "publisher_of",
    "publishing",
    "to_aiter",
    "to_observable",
]
