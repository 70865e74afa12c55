"""Seals a whole journal in the background, beside its collectors."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from typing import Final

from ..errors import JournalError, JournalMissing
from ..journal.journal import Journal
from .options import SealOptions
from .retire import retire
from .sealing import Sealed, seal

__all__ = ["INTERVAL", "Sealer", "SealingThread"]

logger = logging.getLogger("weirpool.archive")

INTERVAL: Final = 5.0
"""Seconds between two looks at the logs."""
STOP_SECONDS: Final = 30.0
"""How long the upload of a last file may take at the end; it is repeated by the next process otherwise."""
RETIRE_SECONDS: Final = 600.0
"""Seconds between looks at what is too old: each costs a few requests for each log."""


class Sealer:
    """Seals the logs of a journal when they are due, and removes history that is too old.

    Call `step` at intervals, or give it to a `SealingThread`. It never blocks collecting: writers do not wait for it,
    and what cannot be sealed now stays in the journal's folder.

    Args:
        journal: The journal's folder.
        options: How to seal it.
        sources: Returns the names of the logs to seal; None: all logs of the journal.
        clock: Returns the current time in seconds since 1970.

    Attributes:
        failures: What prevents logs from being sealed, by name. Each problem is logged once, and tried again.

    """

    def __init__(
        self,
        journal: str | os.PathLike[str],
        options: SealOptions | None = None,
        *,
        sources: Callable[[], Iterable[str]] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.failures: dict[str, str] = {}
        self._journal = Journal(journal)
        self._options = options or SealOptions()
        self._sources = sources or self._journal.sources
        self._clock = clock
        self._retired: dict[str, float] = {}

    def step(self, stop: threading.Event | None = None, *, force: bool = False) -> list[Sealed]:
        """Seal everything that is due now, and return it. Failures of a log do not affect the others.

        Args:
            stop: Ends the step after the current file.
            force: Seal whatever is complete, even if it is small and recent.

        """
        done: list[Sealed] = []
        try:
            sources = sorted(self._sources())
        except JournalError as error:
            self._failed("", error)
            return done
        self.failures.pop("", None)
        for source in sources:
            while stop is None or not stop.is_set():
                sealed = self._seal(source, force)
                if sealed is None:
                    break
                done.append(sealed)
        return done

    def _seal(self, source: str, force: bool) -> Sealed | None:
        try:
            sealed = seal(self._journal.path, source, self._options, force=force, clock=self._clock)
            if sealed is None:
                self._retire(source)
        except JournalMissing:
            # Its collector has received nothing yet.
            return None
        except JournalError as error:
            self._failed(source, error)
            return None
        except Exception as error:
            # A defect that one log shows must not keep the others from being sealed.
            self._failed(source, error, exc_info=True)
            return None
        self.failures.pop(source, None)
        return sealed

    def _retire(self, source: str) -> None:
        if self._options.keep is None and self._options.keep_bytes is None:
            return
        now = self._clock()
        # The clock may have gone back.
        if not 0 <= now - self._retired.get(source, float("-inf")) < RETIRE_SECONDS:
            retire(self._journal.path, source, self._options, clock=self._clock)
            # Otherwise a failure would be forgotten before it is tried again.
            self._retired[source] = now

    def _failed(self, source: str, error: Exception, *, exc_info: bool = False) -> None:
        why = str(error) or repr(error)
        if self.failures.get(source) != why:
            logger.warning(
                "%s: not sealed: %s; it is tried again", source or self._journal.path, why, exc_info=exc_info
            )
        self.failures[source] = why


class SealingThread:
    """A thread that seals from now on. It does not keep the process from ending.

    Call `stop`, which does not wait, and then `join`.

    Args:
        sealer: What seals.
        interval: Seconds between two looks at all logs.

    """

    def __init__(self, sealer: Sealer, interval: float = INTERVAL) -> None:
        self._sealer = sealer
        self._interval = interval
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="weirpool-sealer", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End after the current file."""
        self._stop.set()

    def join(self, seconds: float = STOP_SECONDS) -> None:
        """Wait until the thread has ended, or for so many seconds."""
        self._thread.join(seconds)

    def _run(self) -> None:
        while not self._stop.is_set():
            self._sealer.step(self._stop)
            self._stop.wait(self._interval)
