"""Mistakes by which servers that come and go lose requests, clients, sockets or certificates."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from weirpool.aio.balance import Balancer
from weirpool.aio.balanced import Balanced
from weirpool.aio.connectors import Connector
from weirpool.aio.nodes import Node
from weirpool.aio.outgoing import Outgoing
from weirpool.aio.strategies import Failures
from weirpool.reactivestreams.inbound import Inbound as ReactiveStreamsInbound
from weirpool.river.inbound import Inbound as RiverInbound
from weirpool.rsocket.control import Control
from weirpool.rsocket.dialect import Dialect
from weirpool.transports.reloading import Reloaded
from weirpool.transports.sockets import FileOfSocket
from weirpool.transports.tcp import SocketListener

from .patching import edited, replaced, together
from .saboteur import Saboteur

__all__ = ["SABOTEURS"]

Sabotage = AbstractContextManager[object]


def nothing(*arguments: Any) -> None:
    """Do nothing."""


def refused_is_not_asked_again() -> Sabotage:
    return replaced((Connector, "replaces", lambda self, exchanges, error: False))


def lost_is_asked_again() -> Sabotage:
    return edited(
        Balancer,
        "_send",
        (
            "except (Rejected, SetupRejected) as error:\n            if error.closing and",
            "except SessionError as error:\n            if",
        ),
    )


def items_read_at_once() -> Sabotage:
    return edited(Outgoing, "begin", ("isawaitable(self._source)", "True"))


def spent_items_sent_again() -> Sabotage:
    return replaced((Outgoing, "repeatable", True))


def failures_ignored() -> Sabotage:
    return replaced((Failures, "factor", lambda self, now: 1.0))


def failures_never_forgotten() -> Sabotage:
    return replaced((Failures, "_current", lambda self, now: self._doublings))


def each_lost_call_counts() -> Sabotage:
    return edited(Failures, "failed", ("if began >= self._failed_at:", "if True:"))


def silence_is_no_failure() -> Sabotage:
    return replaced((Node, "canceled", nothing))


def leases_not_weighed() -> Sabotage:
    return replaced((Node, "lease", None))


def ends_with_its_last_stream() -> Sabotage:
    return edited(Control, "close_if_done", ("if frame is None or self._life.is_client", "if True"))


def no_word_of_a_close() -> Sabotage:
    old = "if self._dialect.keepalive or not self._life.is_client:"
    return edited(Control, "close_if_done", (old, "if self._dialect.keepalive:"))


def text_means_nothing() -> Sabotage:
    return edited(Dialect, "code_of", ("if frame.data == Rejected.CLOSING.encode():", "if False:"))


def rejections_unread_by_rs0() -> Sabotage:
    return replaced((ReactiveStreamsInbound, "reject_unanswered", nothing))


def rejections_unread_by_river() -> Sabotage:
    return replaced((RiverInbound, "_reject_unreceived", nothing))


def leases_ignored() -> Sabotage:
    filtered = edited(Balanced, "fit", ("[node for node in ready if node.leased] or ready", "ready"))
    return together(filtered, leases_not_weighed())


def queue_dropped() -> Sabotage:
    return replaced((SocketListener, "_accept_queued", nothing))


def handed_over_for_nothing() -> Sabotage:
    return edited(SocketListener, "hand_over", ("self._shared = True", "self._shared = False"))


def successor_unlinked() -> Sabotage:
    return edited(FileOfSocket, "remove", ("_file_at(self._path) == self._found", "self._path"))


def never_looks_again() -> Sabotage:
    return edited(Reloaded, "current", ("if found != self._found:", "if False:"))


def bad_pair_ends_the_listener() -> Sabotage:
    return edited(Reloaded, "_reload", ("except UrlError as error:", "except KeyError as error:"))


SABOTEURS: Sequence[Saboteur] = (
    Saboteur(
        "refused request fails",
        "a request that a closing server has refused is not asked again",
        "TP3",
        "restarts",
        refused_is_not_asked_again,
    ),
    Saboteur(
        "lost request asked again",
        "a request whose connection broke is asked again, though a handler may have started",
        "TP3",
        "cuts",
        lost_is_asked_again,
    ),
    Saboteur(
        "items read at once",
        "a client reads the items of an upload before the server has requested any, and cannot send them elsewhere",
        "TP3",
        "restarts",
        items_read_at_once,
    ),
    Saboteur(
        "spent items sent again",
        "an upload whose items were read is sent to another server without them",
        "TP3",
        "restarts",
        spent_items_sent_again,
    ),
    Saboteur(
        "server ends with its last stream",
        "a closing RSocket server ends its session when its last stream has ended, and loses what the client has sent",
        "TP3",
        "restarts",
        ends_with_its_last_stream,
    ),
    Saboteur(
        "close without a word",
        "a server of ReactiveSocket 0.0 closes without telling its clients",
        "TP3",
        "restarts",
        no_word_of_a_close,
    ),
    Saboteur(
        "announced close not understood",
        "a client of ReactiveSocket 0.0 takes the announcement of a close for the answer to SETUP",
        "TP3",
        "restarts",
        text_means_nothing,
    ),
    Saboteur(
        "goodbye of rs/0 not understood",
        "a subscription that a closing publisher never opened fails as if it had been lost",
        "TP3",
        "restarts",
        rejections_unread_by_rs0,
    ),
    Saboteur(
        "goodbye of River not understood",
        "a River stream that a closing server never received fails as if it had been lost",
        "TP3",
        "restarts",
        rejections_unread_by_river,
    ),
    Saboteur(
        "leases ignored",
        "a balancer sends requests to a node whose lease is used up, and waits there for the next one",
        "TP2",
        "leased nodes",
        leases_ignored,
    ),
    Saboteur(
        "failures ignored",
        "a balancer sends requests to a node that fails all of them",
        "TP2",
        "bad nodes",
        failures_ignored,
    ),
    Saboteur(
        "failures never forgotten",
        "a node that has failed gets no requests for ever",
        "TP2",
        "bad nodes",
        failures_never_forgotten,
    ),
    Saboteur(
        "each lost call counts",
        "a node whose connection broke once is avoided as if each call on it had failed by itself",
        "TP2",
        "bad nodes",
        each_lost_call_counts,
    ),
    Saboteur(
        "silence is no failure",
        "a balancer sends requests to a node that accepts all and answers none",
        "TP2",
        "bad nodes",
        silence_is_no_failure,
    ),
    Saboteur(
        "leases not weighed",
        "a node gets as many requests as another one that has granted three times as many",
        "TP2",
        "unequal leases",
        leases_not_weighed,
    ),
    Saboteur(
        "queue dropped",
        "a closing server leaves clients that the system has queued to be reset",
        "TP3",
        "listening sockets",
        queue_dropped,
    ),
    Saboteur(
        "handed over for nothing",
        "a server that has handed over its socket still takes the queue, and removes the file",
        "TP3",
        "listening sockets",
        handed_over_for_nothing,
    ),
    Saboteur(
        "successor unlinked",
        "a closing server removes the file of its Unix socket, whosever it is by now",
        "TP4",
        "listening sockets",
        successor_unlinked,
    ),
    Saboteur(
        "renewed certificates not read",
        "a listener uses the certificates that it read first for ever",
        "TP8",
        "certificates",
        never_looks_again,
    ),
    Saboteur(
        "unusable certificates end a listener",
        "a pair of files that do not belong together fails the next link instead of being ignored",
        "TP8",
        "certificates",
        bad_pair_ends_the_listener,
    ),
)
