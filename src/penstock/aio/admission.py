"""Who is served: a server's acceptor looks at each set-up before anything of its connection is served."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..errors import PenstockError, SetupRejected
from ..events import Closed, Established, Event, MetadataPushed, Requested
from ..payload import Payload
from ..transports import Link
from .service import Service

if TYPE_CHECKING:
    from .driver import Driver

__all__ = ["Acceptor", "Gate", "Setup", "certificate_of"]

logger = logging.getLogger("penstock.aio")

# RSocket 1.0, Error Codes.
UNSUPPORTED: Final = 0x002
REJECTED: Final = 0x003


@dataclass(frozen=True, slots=True)
class Setup:
    """What a client says of itself when it connects, and what its link says of it.

    Attributes:
        payload: Data and metadata of the set-up.
        metadata_mime: What the connection's metadata is.
        data_mime: What the connection's data is.
        strict: The client wants to be refused if anything of this is not understood (ReactiveSocket 0.2, S flag).
        understood: We know both MIME types.
        address: The client's.
        certificate: The client's TLS certificate in DER form; None where there is none.

    """

    payload: Payload
    metadata_mime: str
    data_mime: str
    strict: bool
    understood: bool
    address: str
    certificate: bytes | None


Acceptor = Callable[[Setup], "Service | Awaitable[Service | None] | None"]
"""Looks at a set-up: a function or a coroutine function. It raises to refuse the client: what a SetupRejected says is
told to it; of any other error it learns only that it is refused. It may return the service for this connection; None
means the server's."""


def certificate_of(link: Link) -> bytes | None:
    """Return the peer's TLS certificate in DER form, if it has shown one."""
    tls_object = link.get_extra_info("ssl_object")
    certificate: bytes | None = None if tls_object is None else tls_object.getpeercert(True)
    return certificate


def accept(setup: Setup) -> None:
    """Accept everybody, unless a client insists on what we do not know: the acceptor where there is no other."""
    if setup.strict and not setup.understood:
        what = f"metadata is {setup.metadata_mime!r} and data is {setup.data_mime!r}"
        raise SetupRejected(f"not understood, and the set-up is strict: {what}", UNSUPPORTED)


class Gate:
    """Holds a server's connection until its set-up is accepted.

    Args:
        driver: The connection.
        acceptor: Decides.
        certificate: The client's.

    """

    __slots__ = ("_acceptor", "_certificate", "_driver", "_held", "_task")

    def __init__(self, driver: Driver, acceptor: Acceptor | None, certificate: bytes | None) -> None:
        self._driver = driver
        self._acceptor = acceptor or accept
        self._certificate = certificate
        self._held: list[Event] = []
        self._task: asyncio.Task[None] | None = None

    def pass_through(self, happened: list[Event]) -> list[Event]:
        """Take what has happened; return what may be handed on now.

        A client that has said all that it wanted may have closed the connection with the same read: what it asked
        for waits for the acceptor all the same, and so does the end. Where it has asked for nothing, the end passes,
        and the acceptor is canceled.
        """
        self._held += happened
        first = self._held[0] if self._held else None
        if self._task is None and isinstance(first, Established):
            ready = self._ask(first)
            if ready:
                return ready
        if self._task is not None and any(isinstance(event, Requested | MetadataPushed) for event in self._held):
            return []
        return self._end()

    def abandon(self) -> None:
        """Await the acceptor no more, because this side ends the connection; nothing that is held is served."""
        ended = self._end()
        self._held = []
        self._driver.dispatch(ended)

    def _end(self) -> list[Event]:
        """Return the end of the connection, where it has come; then nothing else is awaited."""
        closed: list[Event] = [event for event in self._held if isinstance(event, Closed)]
        if closed:
            if self._task is not None:
                self._task.cancel()
            self._held = []
            self._driver.gate = None
        return closed

    def _ask(self, event: Established) -> list[Event]:
        """Ask the acceptor about the set-up; return what may be handed on."""
        setup = Setup(
            payload=event.payload,
            metadata_mime=event.metadata_mime,
            data_mime=event.data_mime,
            strict=event.strict,
            understood=event.understood,
            address=self._driver.name,
            certificate=self._certificate,
        )
        try:
            answer = self._acceptor(setup)
        except Exception as error:
            self._refuse(error)
            return []
        if inspect.isawaitable(answer):
            self._driver.hold(True)
            self._task = self._driver.loop.create_task(self._await(answer))
            return []
        return self._open(answer)

    async def _await(self, answer: Awaitable[Service | None]) -> None:
        driver = self._driver
        try:
            held = self._open(await answer)
        except Exception as error:
            self._task = None
            self._refuse(error)
            held = self._end()
        else:
            driver.hold(False)
        driver.dispatch(held)
        driver.flush()

    def _open(self, service: Service | None) -> list[Event]:
        """Let everything through from now on."""
        if service is not None:
            self._driver.serve(service)
        self._driver.gate = None
        held, self._held = self._held, []
        return held

    def _refuse(self, error: Exception) -> None:
        """End the session; the client learns why as far as that is meant for it."""
        self._held = [event for event in self._held if isinstance(event, Closed)]
        # What the session has said meanwhile, a sign of life above all, would be taken for acceptance.
        self._driver.session.take_output()
        if not isinstance(error, SetupRejected):
            if not isinstance(error, PenstockError):
                logger.error("the acceptor failed", exc_info=error)
            error = SetupRejected("the server refused the set-up", REJECTED)
        elif error.code is None:
            error = SetupRejected(error.message, REJECTED)
        logger.warning("%s refused: %s", self._driver.name or "a peer", error)
        self._driver.session.close(self._driver.loop.time(), error)
