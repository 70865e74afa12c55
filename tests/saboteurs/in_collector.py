"""Mistakes in the collector: the order of taking, appending, telling the publisher, and asking for more."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from weirpool.aio import client
from weirpool.aio.driver import Driver
from weirpool.aio.exchanges import Exchanges
from weirpool.aio.inbound import ReceiveBuffer
from weirpool.aio.peer import Peer
from weirpool.aio.reconnect import RetryBudget
from weirpool.aio.streams import Stream
from weirpool.events import Event
from weirpool.journal import feedlog, progress
from weirpool.journal.collect import Collector
from weirpool.journal.feedlog import FeedLog

from .patching import edited, replaced
from .saboteur import Saboteur

__all__ = ["SABOTEURS"]

Sabotage = AbstractContextManager[object]


def _ignored(self: Exchanges, event: Event) -> None:
    """Drop an event without an owner."""


def adopted_late() -> Sabotage:
    def adopt(self: Peer) -> Stream | None:
        driver = self._driver
        for stream_id in driver.session.streams():
            exchanges = driver.exchanges
            exchanges.inbound[stream_id] = inbound = ReceiveBuffer(exchanges, stream_id, 1, 1, True)
            return Stream.adopted(self._connector, inbound)
        return None

    return replaced((Driver, "restore", lambda self: None), (Exchanges, "unowned", _ignored), (Peer, "adopt", adopt))


def unowned_events_dropped() -> Sabotage:
    return replaced((Exchanges, "unowned", _ignored))


def told_before_durable() -> Sabotage:
    real = Peer.checkpoint

    def checkpoint(self: Peer, stream: Stream, count: int) -> bytes | None:
        found = real(self, stream, count)
        self._driver.session.commit()
        self._driver.flow.schedule_write()
        return found

    return replaced((Peer, "checkpoint", checkpoint), (Peer, "commit", lambda self: None))


def checkpoint_after_a_wait() -> Sabotage:
    edit = "    checkpoint = peer.checkpoint(", "    await asyncio.sleep(0.02)\n    checkpoint = peer.checkpoint("
    return edited(Collector, "_record", edit)


def full_disk_drops_rows() -> Sabotage:
    return edited(progress, "settled", ("await until_room(progress, error)", "break"))


def done_although_failed() -> Sabotage:
    return edited(Collector, "_record", ("stream.over and stream.error is None", "stream.over"))


def refused_resume_without_gap() -> Sabotage:
    edit = (
        "        self._writer.append_gap(reason, msgspec.msgpack.encode(state))\n            self.gaps += 1",
        "        self._writer.append(NO_ITEMS, '', msgspec.msgpack.encode(state))",
    )
    return edited(FeedLog, "append_gap", edit)


def killed_without_checkpoint() -> Sabotage:
    return edited(FeedLog, "_recall", ("self.loss = NOT_RESUMED", "pass"))


def requests_in_segments() -> Sabotage:
    def split(checkpoint: bytes) -> tuple[bytes, bytes]:
        return checkpoint, b""

    def joined(public: bytes, private: bytes) -> bytes:
        return public

    return replaced((feedlog, "split", split), (feedlog, "join", joined))


def outstanding_too_high() -> Sabotage:
    return edited(Collector, "_record", ("outstanding, log.state", "outstanding + rows, log.state"))


def outstanding_forgotten() -> Sabotage:
    return edited(Collector, "_stream", ("open(log.state.outstanding)", "open(0)"))


def budget_never_refilled() -> Sabotage:
    real = client._policy

    def policy(protocol: str, reconnect: Any) -> Any:
        if reconnect is False and protocol == "river":
            return None, RetryBudget
        return real(protocol, reconnect)

    return replaced((client, "_policy", policy))


def commits_of_more() -> Sabotage:
    """Have the next batch's checkpoint committed by the one before it, which is on the disk by then."""
    return edited(
        Collector,
        "_record",
        (
            "    if checkpoint is not None:\n        peer.commit()",
            "    if checkpoint is not None:\n        peer.checkpoint(stream, grant)\n        peer.commit()",
        ),
    )


SABOTEURS: Sequence[Saboteur] = (
    Saboteur(
        "stream adopted late",
        "a restored stream has no owner until the collector adopts it, and items that arrive earlier are ignored",
        "PL1",
        "kills",
        adopted_late,
    ),
    Saboteur(
        "events without an owner ignored",
        "an event for a stream without an owner is dropped",
        "THREATS 96",
        "ownership",
        unowned_events_dropped,
    ),
    Saboteur(
        "publisher informed too early",
        "items are confirmed to the publisher before they are appended",
        "",
        "kills",
        told_before_durable,
    ),
    Saboteur(
        "wait before the checkpoint",
        "an await between taking items and the checkpoint lets the checkpoint cover items that are not appended",
        "",
        "kills",
        checkpoint_after_a_wait,
    ),
    Saboteur(
        "checkpoint made after the append",
        "a checkpoint made after the append is confirmed, and covers items that arrived meanwhile",
        "",
        "kills",
        commits_of_more,
    ),
    Saboteur(
        "full disk drops a batch",
        "a batch is dropped if the disk is full",
        "THREATS 80",
        "collectors",
        full_disk_drops_rows,
    ),
    Saboteur(
        "done although failed", "a stream that failed is recorded as complete", "", "collectors", done_although_failed
    ),
    Saboteur(
        "no gap after a refusal",
        "no gap is recorded when a publisher refuses to resume",
        "",
        "long outages",
        refused_resume_without_gap,
    ),
    Saboteur(
        "no gap after a kill",
        "no gap is recorded when a collector is killed whose session cannot be resumed",
        "",
        "collectors",
        killed_without_checkpoint,
    ),
    Saboteur(
        "credit shrinks",
        "the credit recorded for the next process includes items that have arrived, so it requests too few",
        "PL1",
        "kills",
        outstanding_too_high,
    ),
    Saboteur(
        "credit requested twice",
        "the next process requests items again that the previous one had requested",
        "",
        "collectors",
        outstanding_forgotten,
    ),
    Saboteur(
        "requests in segments",
        "requests that the publisher has not confirmed are in the log's segments, with their credentials",
        "SF6",
        "kills",
        requests_in_segments,
    ),
    Saboteur(
        "retry budget never refilled",
        "a collector stops trying to connect when River's budget of five tries is used up",
        "PL5",
        "collectors",
        budget_never_refilled,
    ),
)
