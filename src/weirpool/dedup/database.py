"""Databases: SQLite by its path, others by a URL of SQLAlchemy."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    import sqlalchemy

__all__ = ["Database", "SqlAlchemyDatabase", "SqliteDatabase", "database_of"]

BUSY_SECONDS: Final = 30.0
"""How long to wait for another process that writes to an SQLite database."""

Parameters = Mapping[str, Any] | Sequence[Mapping[str, Any]]


class Database(Protocol):
    """A connection to a database. Statements have named parameters: ``:name``."""

    @property
    def connection(self) -> Any:
        """The connection, as handlers get it in a transaction."""

    @property
    def errors(self) -> type[Exception]:
        """The base class of its errors."""

    def begin(self) -> None:
        """Begin a transaction that excludes those of other processes."""

    def commit(self) -> None:
        """End it. What it has changed is on disk."""

    def rollback(self) -> None:
        """Undo the transaction, if there is one."""

    def end(self) -> None:
        """Keep the effects of statements outside of a transaction."""

    def execute(self, statement: str, parameters: Parameters) -> list[Any]:
        """Execute a statement, once for each mapping of a sequence; return its rows."""

    def close(self) -> None:
        """Close the connection."""


def database_of(place: str) -> Database:
    """Open the database of a path, or of a URL of SQLAlchemy such as ``postgresql+psycopg://…``."""
    return SqlAlchemyDatabase(place) if "://" in place else SqliteDatabase(place)


class SqliteDatabase:
    """An SQLite database; see :class:`Database`."""

    errors: type[Exception] = sqlite3.Error

    def __init__(self, path: str) -> None:
        # Transactions are begun and ended here, not by the module.
        self.connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=BUSY_SECONDS)
        self.connection.execute("PRAGMA journal_mode = WAL")
        # A commit is on disk when it returns.
        self.connection.execute("PRAGMA synchronous = FULL")

    def begin(self) -> None:
        """See :class:`Database`."""
        self.connection.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """See :class:`Database`."""
        self.connection.execute("COMMIT")

    def end(self) -> None:
        """See :class:`Database`; each statement is a transaction."""

    def rollback(self) -> None:
        """See :class:`Database`."""
        with suppress(sqlite3.Error):
            self.connection.execute("ROLLBACK")

    def execute(self, statement: str, parameters: Parameters) -> list[Any]:
        """See :class:`Database`."""
        if isinstance(parameters, Mapping):
            return self.connection.execute(statement, parameters).fetchall()
        self.connection.executemany(statement, parameters)
        return []

    def close(self) -> None:
        """See :class:`Database`."""
        self.connection.close()


class SqlAlchemyDatabase:
    """A database of SQLAlchemy, with one connection at a time; see :class:`Database`. It is made for PostgreSQL."""

    def __init__(self, url: str) -> None:
        import sqlalchemy

        self._text = sqlalchemy.text
        self.errors: type[Exception] = sqlalchemy.exc.SQLAlchemyError
        # A connection that the server has closed is replaced.
        self._engine = sqlalchemy.create_engine(url, pool_pre_ping=True, hide_parameters=True)
        self._connection: sqlalchemy.Connection | None = None

    @property
    def connection(self) -> sqlalchemy.Connection:
        """See :class:`Database`."""
        if self._connection is None:
            self._connection = self._engine.connect()
        return self._connection

    def begin(self) -> None:
        """See :class:`Database`."""
        if self._engine.dialect.name == "postgresql":
            self.execute("LOCK TABLE weirpool_progress IN EXCLUSIVE MODE", {})
        else:
            self.execute("SELECT 1", {})

    def commit(self) -> None:
        """See :class:`Database`."""
        self.connection.commit()
        self.rollback()

    def end(self) -> None:
        """See :class:`Database`; statements begin a transaction."""
        self.commit()

    def rollback(self) -> None:
        """See :class:`Database`."""
        connection, self._connection = self._connection, None
        if connection is not None:
            # To return it to its pool undoes what was not committed.
            connection.close()

    def execute(self, statement: str, parameters: Parameters) -> list[Any]:
        """See :class:`Database`."""
        if not parameters and not isinstance(parameters, Mapping):
            return []
        result = self.connection.execute(self._text(statement), parameters)
        return list(result) if result.returns_rows else []

    def close(self) -> None:
        """See :class:`Database`."""
        self.rollback()
        self._engine.dispose()
