"""`penstock serve`: offer a service."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import logging
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import LocalError

if TYPE_CHECKING:
    from ..aio.service import Service


def serve(
    service: Annotated[str, typer.Argument(help="MODULE:NAME or FILE.py:NAME of a penstock.Service.")],
    urls: Annotated[list[str], typer.Argument(help="Where to listen; port 0 lets the system choose one.")],
) -> None:
    """Serve a service until it is stopped by Ctrl-C or SIGTERM.

    Example: penstock serve examples/interop.py:service rsocket+tcp://:7878
    """
    from ..aio.loop import run
    from ..aio.server import serve as listen

    async def main() -> None:
        stopped = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
        async with listen(load_service(service), *urls) as server:
            for url in server.urls:
                print(f"listening on {url}", flush=True)
            await stopped.wait()

    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    run(main())


def load_service(name: str) -> Service:
    """Return the service that `MODULE:NAME` or `FILE.py:NAME` names.

    Raises:
        LocalError: There is no such module, file or name, or it is no service.

    """
    from ..aio.service import Service

    place, _, attribute = name.rpartition(":")
    if not place:
        raise LocalError(f"{name!r} names no service; write MODULE:NAME or FILE.py:NAME")
    module = _load_file(Path(place)) if place.endswith(".py") else _load_module(place)
    service = getattr(module, attribute, None)
    if not isinstance(service, Service):
        what = "has no such name" if service is None else f"is of type {type(service).__name__}"
        raise LocalError(f"{name!r}: {attribute!r} {what}; it must be a penstock.Service")
    return service


def _load_file(path: Path) -> object:
    if not path.is_file():
        raise LocalError(f"there is no file {str(path)!r}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    spec.loader.exec_module(module)
    return module


def _load_module(name: str) -> object:
    sys.path.insert(0, "")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise LocalError(f"there is no module {error.name!r}") from error
