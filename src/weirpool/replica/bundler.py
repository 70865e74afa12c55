"""Writes the bundles of a group: one an interval for all its feeds, as long as the group belongs to this process."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from enum import Enum
from typing import Final

from msgspec.structs import replace

from ..errors import DiskFull, JournalError, StoreError
from .bundle import Part
from .ownership import Ownership, Update

__all__ = ["INTERVAL", "Bundler", "State"]

logger = logging.getLogger("weirpool.replica")

INTERVAL: Final = 0.25
"""Seconds between bundles: four requests a second, however many feeds there are."""
FULL_BYTES: Final = 8 * 1024 * 1024
"""A bundle of this size does not wait."""
LARGEST_BYTES: Final = 64 * 1024 * 1024
"""A bundle takes no more logs at this size; after an outage of the store, several bundles follow each other."""
HEARTBEAT: Final = 2.5
"""Seconds after which a bundle is written without rows, to tell others that the owner is alive."""
RETRIES: Final = (0.1, 0.2, 0.5, 1.0)
"""Seconds before another attempt to reach the store; the last one is repeated."""
SLOW_SECONDS: Final = 10.0
"""A bundle that takes so long is worth a warning: a store that hangs raises no error for minutes."""
CLOSE_SECONDS: Final = 3.0
"""How long a store that does not answer is waited for at the end. All of the end takes less than 10 seconds."""


class State(Enum):
    """Whether the group belongs to this process."""

    OWNED = "owned"
    WAITING = "waiting for the store"
    LOST = "lost"
    CLOSED = "closed"


@dataclass(slots=True)
class _Queued:
    """An update, and who waits for it."""

    update: Update
    waiting: list[Future[None]]


class Bundler:
    """A thread that writes what feeds submit, in bundles.

    Args:
        owned: The group. Nobody else may use it while the bundler is open.
        interval: Seconds between bundles.
        heartbeat: Seconds without rows after which a bundle is written all the same.
        lost: Called once, in the thread, when nothing can be written any more: mostly because another process has taken
            the group over.

    Attributes:
        state: The current state.
        trouble: Why the store does not answer, while the state is WAITING.
        seconds: How long the last bundle took to write.

    """

    def __init__(
        self,
        owned: Ownership,
        *,
        interval: float = INTERVAL,
        heartbeat: float = HEARTBEAT,
        lost: Callable[[JournalError], object] = lambda error: None,
    ) -> None:
        self._owned = owned
        self._interval = interval
        self._heartbeat = heartbeat
        self._lost = lost
        self._changed = threading.Condition()
        self._queue: dict[str, _Queued] = {}
        # Those who only want to know that the group still belongs to this process.
        self._asking: list[Future[None]] = []
        # Those whose bundle is being written.
        self._writing: list[Future[None]] = []
        self._size = 0
        self._sealed: Mapping[str, int] = {}
        self._last = time.monotonic()
        # When the bundle that is being written was begun.
        self._begun = float("inf")
        self._error: JournalError | None = None
        self.state = State.OWNED
        self.trouble = ""
        self.seconds = 0.0
        self._thread = threading.Thread(target=self._run, name="weirpool-replica", daemon=True)
        self._thread.start()

    @property
    def is_open(self) -> bool:
        """True if what is submitted can still be written."""
        return self.state in (State.OWNED, State.WAITING)

    def submit(self, update: Update) -> Future[None]:
        """Put an update into the next bundle. The result is set when that is in the store.

        Its rows must follow those that were submitted for the same log before. The result raises `Superseded` if the
        group was lost: nothing may be acknowledged then.
        """
        done = _result()
        with self._changed:
            if self._is_over(done):
                return done
            before = self._queue.get(update.part.source)
            if before is None:
                self._queue[update.part.source] = _Queued(update, [done])
            else:
                before.update = _joined(before.update, update)
                before.waiting.append(done)
            self._size += update.part.size
            self._changed.notify()
        return done

    def confirm(self) -> Future[None]:
        """Return what is done when a bundle was written after this call; it fails as the result of `submit` does."""
        done = _result()
        with self._changed:
            if not self._is_over(done):
                self._asking.append(done)
                self._changed.notify()
        return done

    def _is_over(self, done: Future[None]) -> bool:
        """Fail a result and return True if nothing is written any more."""
        if self._error is None and self.state is State.CLOSED:
            done.set_exception(StoreError("the collector is closing, and writes nothing any more"))
        elif self._error is not None:
            done.set_exception(self._error)
        return done.done()

    def release(self, sealed: Mapping[str, int]) -> None:
        """Tell up to which position the rows of each log are in sealed segments in the store."""
        with self._changed:
            self._sealed = dict(sealed)

    def check(self) -> None:
        """Warn if the store does not answer, once for each bundle. Call it every few seconds."""
        seconds = time.monotonic() - self._begun
        if seconds > SLOW_SECONDS:
            self._begun = float("inf")
            logger.warning("the store has not answered for %.0f s; no item is acknowledged until it does", seconds)

    def close(self) -> None:
        """Write what was submitted, give the group up, and end the thread.

        A store that does not answer is not waited for: what was submitted then fails, as if this process had died.
        """
        with self._changed:
            if self.state is not State.LOST:
                self.state = State.CLOSED
            self._changed.notify()
        self._thread.join(CLOSE_SECONDS)
        if self._thread.is_alive():
            error = StoreError(f"the store has not answered for {CLOSE_SECONDS:g} s, and the collector ends")
            logger.warning("%s; what it has not acknowledged is sent again", error)
            self._fail(error)

    def _run(self) -> None:
        ending = False
        while not ending:
            with self._changed:
                while not self._is_due():
                    # What is submitted meanwhile makes the next bundle due earlier.
                    self._changed.wait(self._until_due())
                taken = self._take()
                ending = self.state is State.CLOSED and not self._queue
                sealed = self._sealed
                self._writing = [done for each in taken for done in each.waiting] + self._asking
                self._asking = []
            error = self._written([each.update for each in taken], sealed, ending)
            with self._changed:
                # Empty if `close` has not waited for the store.
                waiting, self._writing = self._writing, []
            _resolve(waiting, error)
            if error is not None:
                self._end(error)
                return

    def _end(self, error: Exception) -> None:
        """Fail all that was submitted; then tell of a loss, so that all know of it even if telling fails."""
        self._fail(error)
        if self._error is not None:
            self._lost(self._error)

    def _fail(self, error: Exception) -> None:
        """Fail all that was submitted."""
        with self._changed:
            left = [done for each in self._queue.values() for done in each.waiting] + self._asking + self._writing
            self._queue, self._asking, self._writing = {}, [], []
        _resolve(left, error)

    def _take(self) -> list[_Queued]:
        """Remove and return what the next bundle has: the oldest updates, as far as they fit."""
        taken: list[_Queued] = []
        size = 0
        for source in list(self._queue):
            if taken and size >= LARGEST_BYTES:
                break
            taken.append(self._queue.pop(source))
            size += taken[-1].update.part.size
        self._size -= size
        return taken

    def _until_due(self) -> float:
        """Return the seconds until a bundle is due although nothing changes."""
        pause = self._interval if self._queue or self._asking else self._heartbeat
        return max(0.0, self._last + pause - time.monotonic())

    def _is_due(self) -> bool:
        return self.state is State.CLOSED or self._size >= FULL_BYTES or self._until_due() == 0.0

    def _written(self, updates: list[Update], sealed: Mapping[str, int], ended: bool) -> Exception | None:
        """Write a bundle, and return the error that ends the ownership."""
        self._begun = begun = time.monotonic()
        try:
            self._owned.release(sealed)
            self._until_answered(lambda: self._owned.append(updates, ended=ended))
        except (StoreError, DiskFull) as error:
            return error
        except Exception as error:
            return self._failed(error)
        finally:
            self._begun = float("inf")
            self._last = time.monotonic()
            self.seconds = self._last - begun
        try:
            self._owned.sweep()
        except JournalError as error:
            # What is left is deleted with the next bundles.
            logger.info("%s", error)
        return None

    def _failed(self, error: Exception) -> JournalError:
        """Give the group up without a bundle that says so; return why."""
        if isinstance(error, JournalError):
            why = error
            logger.warning("%s", why)
        else:
            why = JournalError(f"the bundles of this group cannot be written ({error!r}); please report this defect")
            logger.error("%s", why, exc_info=error)
        with self._changed:
            self.state, self._error = State.LOST, why
        return why

    def _until_answered(self, write: Callable[[], None]) -> None:
        """Call `write`, and then settle what it has written, until the store answers."""
        attempt = 0
        while True:
            try:
                write()
            except (StoreError, DiskFull) as error:
                if self.trouble != str(error):
                    logger.warning("%s; no item is acknowledged until the store answers", error)
                self.trouble = str(error)
                with self._changed:
                    if self.state is State.CLOSED:
                        raise
                    self.state = State.WAITING
                    self._changed.wait_for(lambda: self.state is State.CLOSED, RETRIES[min(attempt, len(RETRIES) - 1)])
                attempt += 1
                write = self._owned.settle
            else:
                break
        with self._changed:
            self.trouble = ""
            if self.state is State.WAITING:
                self.state = State.OWNED


def _result() -> Future[None]:
    """Return a result that those who wait for it cannot cancel."""
    done: Future[None] = Future()
    done.set_running_or_notify_cancel()
    return done


def _resolve(waiting: Iterable[Future[None]], error: Exception | None) -> None:
    for done in waiting:
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)


def _joined(one: Update, two: Update) -> Update:
    """Return two consecutive updates of a log as one."""
    part: Part = replace(
        two.part,
        first=one.part.first,
        size=one.part.size + two.part.size,
        identity=two.part.identity if two.part.identity is not None else one.part.identity,
        secret=two.part.secret if two.part.secret is not None else one.part.secret,
        readers=two.part.readers if two.part.readers is not None else one.part.readers,
        # If the first one has records, then that of a gap after them too.
        before=one.part.before if one.part.size else two.part.before,
    )
    return Update(part, [*one.content, *two.content])
