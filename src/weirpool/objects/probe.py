"""Asks a store whether its conditional writes hold, because some that speak S3's protocol ignore the condition."""

from __future__ import annotations

import logging
from typing import Final
from uuid import uuid4

from ..errors import StoreError
from .ports import Store

__all__ = ["ConditionIgnored", "check_known", "probe", "probe_once"]

logger = logging.getLogger("weirpool.objects")

FOLDER: Final = "_probe"
_FIRST: Final = b"first"
_SECOND: Final = b"second"

# The stores that this process has asked: None if the condition held, otherwise why they are refused.
_asked: dict[str, ConditionIgnored | None] = {}


class ConditionIgnored(StoreError):
    """The store overwrites objects that it was told to create. Another try does not help."""


def check_known(store: Store) -> None:
    """Refuse a store that is known to have no conditional writes, without a request; `ConditionIgnored` if it is."""
    if not store.conditional:
        raise ConditionIgnored(
            f"{_place(store)}: cannot fence collectors, because it has no conditional writes; use a folder, or a URI "
            "of s3, gs or az"
        )


def probe(store: Store) -> None:
    """Create an object twice with different contents, and remove it. Whoever relies on `Store.create` does this first.

    Raises:
        ConditionIgnored: The store has accepted both, or is known to have no conditional writes.
        StoreError: It is unknown whether the condition holds. Call again later.

    """
    check_known(store)
    name = f"{FOLDER}/{uuid4().hex}"
    try:
        _compare(store, name)
    finally:
        try:
            store.delete([name])
        except StoreError as error:
            # It says nothing about conditions.
            logger.warning("%s; remove the object, which only this look at the store has needed", error)


def probe_once(store: Store) -> None:
    """Do the same once for each process and place, for those who write again and again; errors are those of `probe`."""
    if store.uri not in _asked:
        try:
            probe(store)
        except ConditionIgnored as error:
            _asked[store.uri] = error
        else:
            _asked[store.uri] = None
    refused = _asked[store.uri]
    if refused is not None:
        raise ConditionIgnored(str(refused))


def _compare(store: Store, name: str) -> None:
    # The contents differ, so that a repeated request after a lost answer is not taken for success.
    if not store.create(name, _FIRST):
        raise StoreError(f"{_place(store)}/{name}: is said to exist, and nobody has written it; try again")
    again = store.create(name, _SECOND)
    found = store.get(name)
    if again or found == _SECOND:
        raise ConditionIgnored(
            f"{_place(store)}: cannot fence collectors, because it ignores the header {_header(store)} and overwrites "
            "objects that exist: a group could have two owners, whose rows would be lost or stored twice; update the "
            "store, or use one with conditional writes"
        )
    if found != _FIRST:
        raise StoreError(f"{_place(store)}/{name}: differs from what was written there; try again")


def _header(store: Store) -> str:
    return "x-goog-if-generation-match" if store.uri.startswith("gs:") else "If-None-Match"


def _place(store: Store) -> str:
    return store.uri.partition("?")[0]
