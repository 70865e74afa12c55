"""`penstock serve`: offer a service."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import logging
import signal
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ..errors import LocalError

if TYPE_CHECKING:
    from types import ModuleType

    from ..aio.metrics import Metrics
    from ..aio.service import Service

MAX_PORT: Final = 65_535


def serve(
    service: Annotated[str, typer.Argument(help="MODULE:NAME or FILE.py:NAME of a penstock.Service.")],
    urls: Annotated[list[str], typer.Argument(help="Where to listen; port 0 lets the system choose one.")],
    metrics: Annotated[
        str | None, typer.Option("--metrics", help="[HOST:]PORT where Prometheus may scrape; the host: 127.0.0.1.")
    ] = None,
    resume_store: Annotated[
        str,
        typer.Option("--resume-store", help="FOLDER to keep sessions in, for clients to resume them after a restart."),
    ] = "",
) -> None:
    """Serve a service until it is stopped by Ctrl-C or SIGTERM.

    What is in flight then may end first. A URL with +tls names its certificate:
    rsocket+tls://:7878?cert=FILE&key=FILE.

    Example: penstock serve examples/interop.py:service rsocket+tcp://:7878
    """
    from ..aio.loop import run

    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    run(_serve(load_service(service), urls, metrics, resume_store))


async def _serve(service: Service, urls: list[str], metrics: str | None, resume_store: str) -> None:
    from ..aio.metrics import Metrics
    from ..aio.server import serve as listen
    from ..settings import Settings

    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    counters = Metrics()
    settings = Settings(resume_store=resume_store)
    async with listen(service, *urls, settings=settings, taps=[counters] if metrics else []) as server:
        with _exposed(counters, metrics) as place:
            for url in server.urls:
                print(f"listening on {url}", flush=True)
            if place:
                print(f"metrics on {place}", flush=True)
            await stopped.wait()


def _exposed(counters: Metrics, place: str | None) -> AbstractContextManager[str]:
    """Return what lets Prometheus scrape at `place` while it is entered; it yields the URL."""
    if place is None:
        return nullcontext("")
    host, _, port = place.rpartition(":")
    if not port.isdecimal() or int(port) > MAX_PORT:
        raise LocalError(f"--metrics {place!r} is no [HOST:]PORT")
    from ..observe.prometheus import listening

    return listening(counters, host.strip("[]") or "127.0.0.1", int(port))


def load_service(name: str) -> Service:
    """Return the service that `MODULE:NAME` or `FILE.py:NAME` names.

    Raises:
        LocalError: There is no such module, file or name, it fails when it is imported, or it is no service.

    """
    from ..aio.service import Service

    place, _, attribute = name.rpartition(":")
    if not place:
        raise LocalError(f"{name!r} names no service; write MODULE:NAME or FILE.py:NAME")
    try:
        module = _load_file(Path(place)) if place.endswith(".py") else _load_module(place)
    except LocalError:
        raise
    except Exception as error:
        raise LocalError(f"{place} cannot be imported: {type(error).__name__}: {error}{_line(error)}") from error
    service = getattr(module, attribute, None)
    if isinstance(service, Service):
        return service
    there = [known for known, value in vars(module).items() if isinstance(value, Service)]
    known = f"its services are: {', '.join(there)}" if there else "there is no penstock.Service in it"
    what = f"nothing called {attribute!r}" if service is None else f"a {type(service).__name__} called {attribute!r}"
    raise LocalError(f"{place} has {what}; {known}")


def _load_file(path: Path) -> ModuleType:
    """Run a file as a module; files beside it can be imported, as if Python had been started with it."""
    if not path.is_file():
        raise LocalError(f"there is no file {str(path)!r}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and pickles of the file's own look their module up here.
    sys.modules.setdefault(path.stem, module)
    sys.path.insert(0, str(path.parent))
    spec.loader.exec_module(module)
    return module


def _load_module(name: str) -> ModuleType:
    """Import a module, from the working directory if it is there."""
    sys.path.insert(0, "")
    return importlib.import_module(name)


def _line(error: BaseException) -> str:
    """Return where an error was raised: the innermost line that has a file of its own."""
    traceback, where = error.__traceback__, ""
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if not file.startswith("<"):
            where = f" ({file}, line {traceback.tb_lineno})"
        traceback = traceback.tb_next
    return where
