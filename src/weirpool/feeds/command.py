"""Collects the feeds of a file, in this process or in workers, with status over HTTP."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from functools import partial
from importlib.util import find_spec

from ..errors import LocalError
from .board import Board
from .file import FeedsFile
from .grouped import Grouped
from .http import listening
from .process import leave, on_batch, prepare, use_threads
from .reloading import follow
from .running import Control, Runner, run_feeds
from .serve import Serve
from .supervisor import Supervisor
from .workers import Workers

__all__ = ["collect_feeds"]


def collect_feeds(
    file: FeedsFile,
    *,
    workers: int = 0,
    http: tuple[str, int] | None = None,
    names: Sequence[str] = (),
    log: str = "text",
    serve: Serve | None = None,
) -> int:
    """Collect the feeds of a file until SIGTERM or SIGINT; return the signal's number.

    The file is read again when it has changed, and at SIGHUP.

    Args:
        file: The file, as read for the first time.
        workers: The number of processes that share the feeds; 0: this process runs them.
        http: Host and port of the status; None: there is none.
        names: Names by which the status may be asked for, besides addresses and those of this machine.
        log: The form of logs: "json" or "text".
        serve: How the journals are served; None: they are not. This process serves them, also with workers.

    Raises:
        ConnectError: The address of the status, or of the journals, is not available.
        LocalError: The journals cannot be served in this way, or a group needs another key, store or number of workers.

    """
    from ..aio.loop import run

    prepare(log)
    page = partial(_page, http, names)
    return run(_collect(file, workers, page, log, serve))


async def _collect(
    file: FeedsFile,
    workers: int,
    page: Callable[[Board], AbstractContextManager[str]],
    log: str,
    serve: Serve | None,
) -> int:
    board = Board(max(1, workers))
    runner: Runner = _runner(file, board, workers, log)
    use_threads()
    control = Control()
    async with AsyncExitStack() as stack:
        stack.enter_context(control.listening())
        if url := stack.enter_context(page(board)):
            print(f"status on {url}", flush=True)
        if serve is not None:
            runner = await stack.enter_async_context(_served(runner, file, serve, board))
        following = asyncio.ensure_future(follow(file.path, control, board.warn))
        try:
            late = await run_feeds(file, runner, control)
        finally:
            following.cancel()
        leave(late)
    return control.stopped_by or signal.SIGTERM


def _runner(file: FeedsFile, board: Board, workers: int, log: str) -> Runner:
    if file.group is not None:
        if workers:
            raise LocalError(
                f"{file.path}: --workers cannot be used with [group]; split the feeds into files with groups of their "
                "own, and start a collector for each"
            )
        return Grouped(board.publish, on_batch())
    return Workers(board, workers, log) if workers else Supervisor(board.publish, on_batch=on_batch())


@asynccontextmanager
async def _served(runner: Runner, file: FeedsFile, serve: Serve, board: Board) -> AsyncIterator[Runner]:
    # Most collectors serve nothing.
    from .serving import serving

    async with serving(runner, file, serve, board) as served:
        for url in served.urls:
            print(f"serving the journals on {url}", flush=True)
        yield served


def _page(http: tuple[str, int] | None, names: Sequence[str], board: Board) -> AbstractContextManager[str]:
    if http is None:
        return nullcontext("")
    if find_spec("prometheus_client") is None:
        return listening(board, *http, names=names)
    from ..observe.feed_metrics import exposition

    return listening(board, *http, exposition, names=names)
