"""What has been handled, in a database."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from ..errors import DedupError
from .database import database_of
from .progress import Origin, Progress

__all__ = ["KEEP_SECONDS", "Store"]

KEEP_SECONDS: Final = 30 * 24 * 3600.0
"""How long something that was handled is remembered: a query that has been stopped for longer may repeat rows."""
PRUNE_SECONDS: Final = 3600.0
_TABLES: Final = (
    "CREATE TABLE IF NOT EXISTS weirpool_progress (query VARCHAR(128) NOT NULL, part INTEGER NOT NULL, "
    "progress TEXT NOT NULL, at BIGINT NOT NULL, PRIMARY KEY (query, part))",
    "CREATE TABLE IF NOT EXISTS weirpool_keys (key VARCHAR(512) PRIMARY KEY, at BIGINT NOT NULL)",
    "CREATE INDEX IF NOT EXISTS weirpool_progress_at ON weirpool_progress (at)",
    "CREATE INDEX IF NOT EXISTS weirpool_keys_at ON weirpool_keys (at)",
)
_SAVE_PROGRESS: Final = (
    "INSERT INTO weirpool_progress (query, part, progress, at) VALUES (:query, :part, :progress, :at) "
    "ON CONFLICT (query, part) DO UPDATE SET progress = excluded.progress, at = excluded.at"
)
_SAVE_KEY: Final = (
    "INSERT INTO weirpool_keys (key, at) VALUES (:key, :at) ON CONFLICT (key) DO UPDATE SET at = excluded.at"
)


class Store:
    """The progress of tasks, and the keys of an application, in tables whose names begin with `weirpool_`.

    Its methods wait for the database, and may be called from any thread, one at a time.

    Args:
        place: The path of an SQLite database, or the URL of another one. It may have the application's own tables.
        keep: Seconds that something is remembered.
        clock: Returns the current time in seconds since 1970.

    Raises:
        DedupError: The database cannot be opened.

    """

    def __init__(
        self, place: str | os.PathLike[str], *, keep: float = KEEP_SECONDS, clock: Callable[[], float] = time.time
    ) -> None:
        self._place = os.fspath(place)
        # A URL may contain a password.
        self._shown = self._place.partition("://")[0] + " database" if "://" in self._place else self._place
        self._keep = keep
        self._clock = clock
        self._pruned = 0
        self._inside = False
        self._lock = threading.Lock()
        try:
            self._database = database_of(self._place)
        except sqlite3.Error as error:
            raise self._failure(error) from error
        try:
            self._create()
        except BaseException:
            self._database.close()
            raise

    @property
    def connection(self) -> Any:
        """The connection, for a handler that stores its results in the same transaction."""
        return self._database.connection

    def load(self, origin: Origin) -> Progress:
        """Return the progress of a task."""
        statement = "SELECT progress FROM weirpool_progress WHERE query = :query AND part = :part"
        rows = self._select(statement, {"query": origin.query, "part": origin.partition})
        try:
            return msgspec.json.decode(rows[0][0], type=Progress) if rows else Progress()
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise DedupError(f"{self._shown} has an invalid progress of query {origin.query}: {error}") from None

    def has(self, key: str) -> bool:
        """Return True if an application's key is there."""
        return bool(self._select("SELECT 1 FROM weirpool_keys WHERE key = :key", {"key": key}))

    def save(self, progress: Mapping[Origin, Progress], keys: Iterable[str]) -> None:
        """Store progress and keys. They are on disk when this returns."""
        with self._lock:
            self._begin()
            try:
                self._write(progress, keys)
                self._commit()
            except BaseException:
                self._rollback()
                raise

    def begin(self) -> None:
        """Begin a transaction, which excludes those of other processes."""
        with self._lock:
            self._begin()

    def commit(self, progress: Mapping[Origin, Progress], keys: Iterable[str]) -> None:
        """Store progress and keys in the transaction, and end it. All of it is on disk when this returns."""
        with self._lock:
            self._write(progress, keys)
            self._commit()

    def rollback(self) -> None:
        """Undo the transaction, if there is one."""
        with self._lock:
            self._rollback()

    def close(self) -> None:
        """Close the database. May be called twice."""
        with self._lock, self._errors():
            self._database.close()

    def _create(self) -> None:
        with self._errors():
            for statement in _TABLES:
                self._database.execute(statement, {})
            self._database.end()

    def _begin(self) -> None:
        with self._errors():
            self._database.begin()
        self._inside = True

    def _commit(self) -> None:
        with self._errors():
            self._database.commit()
        self._inside = False

    def _rollback(self) -> None:
        self._inside = False
        with self._errors():
            self._database.rollback()

    def _select(self, statement: str, parameters: Mapping[str, Any]) -> list[Any]:
        with self._lock, self._errors():
            rows = self._database.execute(statement, parameters)
            if not self._inside:
                # Some databases begin a transaction for each statement.
                self._database.rollback()
        return rows

    def _write(self, progress: Mapping[Origin, Progress], keys: Iterable[str]) -> None:
        now = int(self._clock())
        rows = [
            {"query": origin.query, "part": origin.partition, "progress": msgspec.json.encode(each).decode(), "at": now}
            for origin, each in progress.items()
        ]
        with self._errors():
            self._database.execute(_SAVE_PROGRESS, rows)
            self._database.execute(_SAVE_KEY, [{"key": key, "at": now} for key in keys])
            if now - self._pruned > PRUNE_SECONDS:
                self._pruned = now
                for table in ("weirpool_progress", "weirpool_keys"):
                    self._database.execute(f"DELETE FROM {table} WHERE at < :oldest", {"oldest": now - int(self._keep)})

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except self._database.errors as error:
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> DedupError:
        # SQLAlchemy adds lines with the statement.
        why = (str(error).splitlines() or [type(error).__name__])[0]
        return DedupError(f"{self._shown} cannot be used: {why}; check it, its permissions, and the disk or network")
