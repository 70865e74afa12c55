"""Serves the journals of feeds to readers elsewhere, whichever process collects them."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ..errors import LocalError
from ..serving.door import OPERATOR_TOKEN, environment_token
from ..serving.host import Host, Listening, check
from ..serving.journals import journal_names
from .status import ServedStatus
from .values import resolve

if TYPE_CHECKING:
    from .board import Board
    from .file import FeedsFile
    from .running import Runner
    from .serve import Serve

__all__ = ["Serving", "check_serving", "served_folders", "serving"]

logger = logging.getLogger("weirpool.feeds")


def _listening(serve: Serve, folder: Path) -> Listening:
    """Return where to listen. A token that is stored elsewhere is read for each reader.

    Args:
        serve: The table.
        folder: The folder that a relative path of the token starts from.

    """
    token, operator = serve.token, serve.operator_token
    return Listening(
        urls=(serve.url,) if isinstance(serve.url, str) else serve.url,
        cafile=serve.cafile,
        cert=serve.cert,
        key=serve.key,
        token=environment_token() if token is None else lambda: resolve(token, folder),
        operator=environment_token(OPERATOR_TOKEN) if operator is None else lambda: resolve(operator, folder),
        address=serve.address,
        allow_anonymous=serve.allow_anonymous,
    )


def served_folders(file: FeedsFile, serve: Serve, before: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the folders of the journals of a file's feeds, by the names under which they are served.

    Args:
        file: The file.
        serve: How they are served.
        before: The journals of feeds as they run, by the feed's name: a feed whose table is not valid goes on as it is.

    Raises:
        LocalError: The names are not clear.

    """
    going_on = {name: journal for name, journal in (before or {}).items() if name in file.problems}
    journals = {**{name: config.journal for name, config in file.feeds.items()}, **going_on}
    try:
        return journal_names(journals.values(), serve.journals)
    except LocalError as error:
        raise LocalError(f"{file.path}: serve.journals: {error}") from None


def check_serving(file: FeedsFile, serve: Serve) -> dict[str, str]:
    """Return what would be served, as `served_folders`; `LocalError` if it would be refused."""
    check(_listening(serve, file.path.parent))
    return served_folders(file, serve)


@asynccontextmanager
async def serving(runner: Runner, file: FeedsFile, serve: Serve, board: Board) -> AsyncIterator[Serving]:
    """Serve the journals of a file's feeds while a block lasts.

    Args:
        runner: What runs the feeds.
        file: The first version of the file.
        serve: How they are served.
        board: Gets the statuses.

    Yields:
        A runner that takes the place of `runner`.

    Raises:
        LocalError: The addresses, the names or the token are not valid, or not safe.
        ConnectError: An address cannot be bound.

    """
    async with Host(served_folders(file, serve), _listening(serve, file.path.parent)) as host:
        yield Serving(runner, host, serve, board)


class Serving:
    """A runner of feeds whose journals are served.

    Args:
        runner: What runs the feeds.
        host: What serves.
        serve: How the journals are named at the first start.
        board: Gets the statuses.

    """

    def __init__(self, runner: Runner, host: Host, serve: Serve, board: Board) -> None:
        self._runner = runner
        self._host = host
        self._serve = serve
        self._board = board
        self._journals: dict[str, str] = {}
        self._standing_by = ""
        self._follow_group()

    @property
    def standing_by(self) -> str:
        """Why another process continues the logs; empty if none does."""
        return self._runner.standing_by

    def _follow_group(self) -> None:
        """Turn readers away while another collector of the group continues the logs."""
        if self._runner.standing_by != self._standing_by:
            self._standing_by = self._runner.standing_by
            self._host.journals.stand_by(self._standing_by)

    @property
    def urls(self) -> list[str]:
        """The URLs that it listens on."""
        return self._host.urls

    async def apply(self, file: FeedsFile) -> None:
        """Make the feeds of a file run, and serve their journals. If its names are not clear, serve as before."""
        await self._runner.apply(file)
        serve = self._renamed(file)
        try:
            folders = served_folders(file, serve, self._journals)
        except LocalError as error:
            logger.error("the same journals are served as before: %s", error)
            return
        going_on = {name: journal for name, journal in self._journals.items() if name in file.problems}
        self._journals = {**{name: config.journal for name, config in file.feeds.items()}, **going_on}
        await self._host.replace(folders)

    def _renamed(self, file: FeedsFile) -> Serve:
        """Return how journals are named now. The rest of the table is applied at the next start."""
        if file.serve is None:
            return self._serve
        now = msgspec.structs.replace(self._serve, journals=file.serve.journals)
        # The command line may allow what the file does not.
        allowed = file.serve.allow_anonymous or now.allow_anonymous
        if now != msgspec.structs.replace(file.serve, allow_anonymous=allowed):
            logger.warning("%s: [serve] has changed; all of it but journals is applied at the next start", file.path)
        return now

    def publish(self) -> None:
        """Publish the statuses of feeds and journals."""
        self._runner.publish()
        self._follow_group()
        journals = self._host.journals
        self._board.serve(
            [
                ServedStatus(name, os.path.abspath(folder), self._host.url(name), journals.connections(name))
                for name, folder in sorted(journals.folders.items())
            ]
        )

    async def stop(self) -> list[str]:
        """Stop all feeds; return the names of what could not be stopped in time."""
        return await self._runner.stop()
