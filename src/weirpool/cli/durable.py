"""`weirpool collect --durable remote`: acknowledges items when they are in an object store."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from typer import Option

from ..errors import LocalError
from .console import note
from .values import offering

if TYPE_CHECKING:
    from ..journal.collect import Collector, Progress
    from ..replica.group import Group, Membership

__all__ = ["KEY", "STOPPED", "DurableOptions", "collect_in_group"]

KEY: Final = "WEIRPOOL_GROUP_KEY"
"""The environment variable with the key of the group's secrets."""
STOPPED: Final = "stopped; the same command continues from here"
PLACES: Final = ("local", "remote")


@dataclass(frozen=True, kw_only=True)
class DurableOptions:
    """Where items are before they are acknowledged."""

    durable: Annotated[
        str,
        Option(
            "--durable",
            help="Acknowledge items when they are on this disk (local), or in --store (remote).",
            autocompletion=offering(*PLACES),
        ),
    ] = "local"
    store: Annotated[
        str | None, Option("--store", metavar="URI", help="With --durable remote: a folder, or s3://, gs:// or az://.")
    ] = None
    group: Annotated[
        str | None,
        Option(
            "--group",
            metavar="NAME",
            help=f"With --durable remote: the collectors that stand in for each other, with one key in {KEY}.",
        ),
    ] = None

    def membership(self, journal: Path) -> Membership | None:
        """Return the group; None if items are acknowledged when they are on this disk."""
        if self.durable not in PLACES:
            raise LocalError(f"--durable {self.durable!r} is not known; use local or remote")
        if self.durable == "local":
            if self.store is not None or self.group is not None:
                raise LocalError("--store and --group need --durable remote")
            return None
        if self.store is None or self.group is None or not os.environ.get(KEY):
            raise LocalError(
                f"--durable remote needs --store, --group and the environment variable {KEY}, such as the output of "
                "`openssl rand -base64 32`"
            )
        from ..replica.group import Membership

        member = Membership(name=self.group, store=self.store, key=os.environ[KEY], journal=journal)
        # Both are checked before anything is waited for.
        member.vault()
        member.sequence()
        return member


async def collect_in_group(
    member: Membership,
    made: Callable[..., Collector],
    collected: Callable[[Collector], Awaitable[None]],
    stopped: asyncio.Future[signal.Signals],
    waiting: Callable[[str], None] = lambda reason: None,
) -> tuple[Progress, signal.Signals | None]:
    """Collect while a group belongs to this process, and seal what was collected.

    Args:
        member: The group.
        made: Makes the collector, each time the group was taken over.
        collected: Runs it until the stream is complete.
        stopped: The signal that ends it.
        waiting: Called with the reason why this process stands by; empty: it does not.

    Returns:
        The progress, and the signal that has ended it or None.

    """
    from ..archive.options import SealOptions
    from ..archive.sealer import Sealer, SealingThread
    from ..feeds.standby import hold
    from ..journal.committer import Committer
    from ..journal.progress import Progress

    options = SealOptions(store=member.store)
    progress = Progress()

    async def work(group: Group) -> None:
        nonlocal progress
        committer = Committer(member.journal, replica=group.logs)
        sealing = SealingThread(Sealer(member.journal, options))
        try:
            collector = made(committer=committer, segment_seconds=options.max_age)
            progress = collector.progress
            await collected(collector)
        finally:
            sealing.stop()
            await committer.close()
            await asyncio.to_thread(sealing.join)

    def tell(reason: str) -> None:
        waiting(reason)
        if reason:
            note(f"standing by: {reason}")

    holding = asyncio.ensure_future(hold(member, options.max_age, work, tell))
    stopped.add_done_callback(lambda _: holding.cancel())
    try:
        await holding
    except asyncio.CancelledError:
        if not stopped.done():
            raise
        note(STOPPED)
    return progress, stopped.result() if holding.cancelled() else None
