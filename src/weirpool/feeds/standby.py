"""Works for a group while it belongs to this process, and stands by while it belongs to another collector."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

from ..errors import JournalError
from ..texts import counted

if TYPE_CHECKING:
    from ..replica.group import Group, Membership

__all__ = ["hold"]

logger = logging.getLogger("weirpool.feeds")

TEND_SECONDS: Final = 5.0
"""How often bundles are looked at that may be deleted."""
GRACE_SECONDS: Final = 5.0
"""How long the last appends may take at the end. A store that does not answer is not waited for."""
LONGEST_PAUSE: Final = 60.0
"""Seconds between take-overs that fail, as when a log here is another one. Each leaves a bundle for ever."""

T = TypeVar("T")


async def hold(
    member: Membership,
    seal_seconds: float,
    work: Callable[[Group], Awaitable[T]],
    waiting: Callable[[str], None] = lambda reason: None,
) -> T:
    """Do some work while a group belongs to this process.

    Waits until the group has no owner, takes it over, and begins. If another collector takes the group over, the work
    is canceled, and this one waits again.

    Args:
        member: The group.
        seal_seconds: The age at which the last segment of a log that nobody writes is complete.
        work: The work. When it is canceled it closes all logs.
        waiting: Called with the reason why this process waits.

    Returns:
        The result of the work, when that ends by itself. The group is given up then.

    Raises:
        ConditionIgnored: The store does not fence collectors.

    """
    from ..objects.probe import ConditionIgnored
    from ..replica.group import HEARTBEATS
    from ..replica.ownership import Superseded

    watch = await _asked(member.watch)
    pause = member.patience / HEARTBEATS
    delay = 0.0
    waiting("looking for the owner of the group")
    while True:
        lost = asyncio.Event()
        try:
            while not await _asked(watch.silent):
                waiting(f"another collector of group {member.name!r} collects")
                delay = 0.0
                await asyncio.sleep(pause)
            delay = min(max(2 * delay, pause), LONGEST_PAUSE)
            group = await _taken(member, lost)
        except ConditionIgnored:
            # Waiting does not help, and nobody may collect into this store.
            raise
        except JournalError as error:
            waiting(str(error))
            if isinstance(error, Superseded):
                # There is an owner.
                delay = 0.0
            await asyncio.sleep(max(delay, pause))
            continue
        delay = 0.0
        times = counted(group.epoch, "take-over")
        logger.info("group %r: this collector is the owner, after %s", member.name, times)
        waiting("")
        working = asyncio.ensure_future(work(group))
        try:
            if await _ended(working, lost, group, seal_seconds):
                return working.result()
        finally:
            await _given_up(working, group)
        logger.warning("group %r: another collector has taken it over; this one stands by", member.name)


async def _asked(ask: Callable[[], T]) -> T:
    """Return what `ask` returns, from a thread that the end of this process does not wait for: a store may hang."""
    answer: Future[T] = Future()
    answer.set_running_or_notify_cancel()

    def run() -> None:
        try:
            answer.set_result(ask())
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=run, name="weirpool-standby", daemon=True).start()
    return await asyncio.wrap_future(answer)


async def _taken(member: Membership, lost: asyncio.Event) -> Group:
    """Take the group over."""
    from ..replica.group import Group

    loop = asyncio.get_running_loop()
    taking = asyncio.ensure_future(asyncio.to_thread(Group, member, lambda error: loop.call_soon_threadsafe(lost.set)))
    try:
        return await asyncio.shield(taking)
    except asyncio.CancelledError:
        with suppress(JournalError):
            await asyncio.to_thread((await taking).close)
        raise


async def _ended(working: asyncio.Future[T], lost: asyncio.Event, group: Group, seal_seconds: float) -> bool:
    """Tend the group until the work has ended, and return True; False if the group was lost."""
    losing = asyncio.ensure_future(lost.wait())
    try:
        while not (working.done() or lost.is_set()):
            await asyncio.wait((working, losing), timeout=TEND_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.to_thread(group.tend, seal_seconds)
    finally:
        losing.cancel()
    # Work may learn of the loss first, by an error, and fail.
    return working.done() and not (group.is_lost and _has_failed(working))


def _has_failed(working: asyncio.Future[T]) -> bool:
    return working.cancelled() or working.exception() is not None


async def _given_up(working: asyncio.Future[T], group: Group) -> None:
    """End the work, then give the group up; the other way round if the store does not answer."""
    working.cancel()
    if not group.trouble:
        await asyncio.wait((working,), timeout=GRACE_SECONDS)
    await asyncio.to_thread(group.close)
    await asyncio.wait((working,))
