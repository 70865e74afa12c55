"""`weirpool serve`: runs a service."""

from __future__ import annotations

import gc
import importlib
import importlib.util
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from traceback import extract_tb
from typing import TYPE_CHECKING, Annotated, Any, Final

from typer import Argument, Option

from ..access.exposure import check_page
from ..access.listening import server_tls, without_files
from ..errors import LocalError
from ..texts import concealed
from .connect_options import Debug, Set, ShowSecrets, Stats
from .connection import summary
from .console import SERVING, note, say, start_logging
from .entrance import AllowAnonymous, entrance
from .framedump import FrameDump
from .given import given_settings
from .groups import grouped
from .optionsfile import OptionsFile
from .values import duration

if TYPE_CHECKING:
    from types import ModuleType

    from ..aio.metrics import Metrics
    from ..aio.server import Server
    from ..aio.service import Service
    from ..aio.setup import Acceptor
    from ..leases import IntervalLease
    from ..settings import Settings
    from ..tap import Tap

__all__ = ["ServeOptions", "load_service", "run_server", "serve", "until_stopped"]

MAX_PORT: Final = 65_535


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """Which clients may connect, their limits, and what to report."""

    __repr__ = concealed

    metrics: Annotated[
        str | None, Option("--metrics", help="Serve Prometheus metrics on [HOST:]PORT; by default on 127.0.0.1.")
    ] = None
    origin: Annotated[
        list[str], Option("--origin", help="With ws and wss: an origin that may connect, or *; repeatable.")
    ] = field(default_factory=list)
    lease: Annotated[
        str | None,
        Option(
            "--lease", metavar="REQUESTS/SECONDS", help="Grant this many requests per period to clients with leases."
        ),
    ] = None
    cert: Annotated[str | None, Option("--cert", metavar="FILE", help="With TLS: the server's certificate.")] = None
    key: Annotated[str | None, Option("--key", metavar="FILE", help="Its key, if in a separate file.")] = None
    cafile: Annotated[
        str | None, Option("--cafile", metavar="FILE", help="With TLS: require client certificates signed by these.")
    ] = None
    auth: Annotated[
        str | None,
        Option("--auth", metavar="AUTH", help="Credentials that clients must show; see call.", show_default=False),
    ] = None
    allow_anonymous: AllowAnonymous = False
    resume: Annotated[
        float | None,
        Option(
            "--resume", metavar="SECONDS", parser=duration(), help="How long clients may resume a session; 0: never."
        ),
    ] = None
    resume_store: Annotated[
        str,
        Option(
            "--resume-store",
            metavar="FOLDER",
            help="Keep sessions in this folder, so that clients can resume them after a restart.",
        ),
    ] = ""
    reflection: Annotated[
        bool, Option("--reflection", help="Describe the service to clients that ask: routes, types, documentation.")
    ] = False
    set: Set = field(default_factory=list)
    debug: Debug = False
    show_secrets: ShowSecrets = False
    stats: Stats = False
    options: OptionsFile = None

    def door(self, urls: Sequence[str]) -> tuple[list[str], Acceptor | None]:
        """Return the addresses to listen on, with their certificates, and the acceptor of clients.

        Raises:
            LocalError: Anybody could connect from another machine; or a file or credentials are not valid.

        """
        addresses = server_tls(urls, self.cafile, self.cert, self.key)
        if self.metrics is not None:
            check_page("--metrics", _place(self.metrics)[0], allowed=self.allow_anonymous)
        return addresses, entrance(addresses, self.auth, self.allow_anonymous)

    def settings(self) -> Settings:
        """Return the settings of the server."""
        from ..settings import Settings

        chosen: dict[str, Any] = given_settings(self.set)
        if self.origin:
            chosen["origins"] = tuple(self.origin)
        if self.lease is not None:
            chosen["lease"] = _lease(self.lease)
        if self.resume is not None:
            chosen["resume_timeout"] = self.resume
        if self.reflection:
            chosen["reflection"] = True
        if self.resume_store:
            chosen["resume_store"] = self.resume_store
        return Settings(**chosen)


@grouped
def serve(
    service: Annotated[str, Argument(help="MODULE:NAME or FILE.py:NAME of a weirpool.Service.")],
    urls: Annotated[list[str], Argument(help="URLs to listen on; the system chooses a port for port 0.")],
    options: ServeOptions,
) -> None:
    """Serve a service until it is stopped by Ctrl-C or SIGTERM.

    Requests in flight may finish first. A URL with +tls may name its certificate:
    rsocket+tls://:7878?cert=FILE&key=FILE.

    Example: weirpool serve app:service rsocket+tcp://localhost:7878

    Example: weirpool serve app:service rsocket+tls://:7878 --cert server.pem --auth env:CLIENTS_AUTH --lease 100/1
    """
    settings = options.settings()
    run_server(lambda: load_service(service), urls, options, settings)


def run_server(
    load: Callable[[], Service],
    urls: list[str],
    options: ServeOptions,
    settings: Settings,
    announce: Callable[[Sequence[str]], None] = lambda urls: None,
) -> None:
    """Serve a service until a signal arrives.

    Args:
        load: Returns the service, after the options have been checked.
        urls: Where to listen.
        options: The options of the command line.
        settings: The settings of the server.
        announce: Called with the URLs on which the server listens, after they are printed.

    """
    from ..aio.loop import run

    start_logging(SERVING)
    addresses, acceptor = options.door(urls)
    run(_serve(load(), addresses, acceptor, options, settings, announce))


async def _serve(
    service: Service,
    urls: list[str],
    acceptor: Acceptor | None,
    options: ServeOptions,
    settings: Settings,
    announce: Callable[[Sequence[str]], None],
) -> None:
    from ..aio.server import serve as listen

    def serving(taps: list[Tap]) -> Server:
        return listen(service, *urls, settings=settings, acceptor=acceptor, taps=taps)

    await until_stopped(serving, options, settings, announce)


def no_announcement(urls: Sequence[str]) -> None:
    """Say nothing but the URLs."""


async def until_stopped(
    listen: Callable[[list[Tap]], Server],
    options: ServeOptions,
    settings: Settings,
    announce: Callable[[Sequence[str]], None] = no_announcement,
) -> None:
    """Run a server, which `listen` returns for these taps, until a signal arrives; print its URLs."""
    from ..aio.metrics import Metrics
    from ..aio.signals import stop_signal

    began = monotonic()
    counters = Metrics()
    taps: list[Tap] = [counters] if options.metrics or options.stats else []
    if options.debug:
        taps.append(FrameDump(note, secrets=options.show_secrets, settings=settings))
    async with stop_signal() as stopped, listen(taps) as server:
        # What is imported stays. A full collection would look at all of it, for longer than clients should wait.
        gc.collect()
        gc.freeze()
        with _exposed(counters, options.metrics) as metrics_url:
            shown = [without_files(url) if options.cert else url for url in server.urls]
            for url in shown:
                say(f"listening on {url}")
            if metrics_url:
                say(f"metrics on {metrics_url}")
            announce(shown)
            await stopped
    if options.stats:
        note(summary(counters.snapshot(), monotonic() - began))


def _exposed(counters: Metrics, place: str | None) -> AbstractContextManager[str]:
    """Serve Prometheus metrics at `place` while the context is open; the context yields the URL."""
    if place is None:
        return nullcontext("")
    from ..observe.prometheus import listening

    return listening(counters, *_place(place))


def _place(text: str) -> tuple[str, int]:
    """Return the host and the port of metrics."""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > MAX_PORT:
        raise LocalError(f"--metrics {text!r} is not [HOST:]PORT")
    return host.strip("[]") or "127.0.0.1", int(port)


def load_service(name: str) -> Service:
    """Import and return the service `MODULE:NAME` or `FILE.py:NAME`."""
    from ..aio.service import Service

    place, _, attribute = name.rpartition(":")
    if not place:
        raise LocalError(f"{name!r} does not name a Service; use MODULE:NAME or FILE.py:NAME")
    try:
        if place.endswith(".py"):
            module = _load_file(Path(place))
        else:
            # The working directory comes first.
            sys.path.insert(0, "")
            module = importlib.import_module(place)
    except LocalError:
        raise
    except Exception as error:
        raise LocalError(f"{place} cannot be imported: {type(error).__name__}: {error}{_line(error)}") from error
    service = getattr(module, attribute, None)
    if isinstance(service, Service):
        return service
    found = [known for known, value in vars(module).items() if isinstance(value, Service)]
    known = f"its services are: {', '.join(found)}" if found else "it has no weirpool.Service"
    problem = f"has no {attribute!r}" if service is None else f"has {attribute!r}, but as a {type(service).__name__}"
    raise LocalError(f"{place} {problem}; {known}")


def _load_file(path: Path) -> ModuleType:
    """Run a file as a module. It can import files in its folder, as if Python had been started with it."""
    if not path.is_file():
        raise LocalError(f"there is no file {str(path)!r}")
    name = path.stem
    while name in sys.modules:
        name += "_"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses, annotations and pickle look up the module of a class here.
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent))
    spec.loader.exec_module(module)
    return module


def _line(error: BaseException) -> str:
    """Return the innermost line of an error's traceback that is in a file."""
    found = [frame for frame in extract_tb(error.__traceback__) if not frame.filename.startswith("<")]
    return f" ({found[-1].filename}, line {found[-1].lineno})" if found else ""


def _lease(text: str) -> IntervalLease:
    from ..leases import IntervalLease

    found = re.fullmatch(r"([0-9]{1,10})/([0-9]{1,7}(?:\.[0-9]{1,3})?)", text)
    if found is None:
        raise LocalError(f"--lease {text!r} is not REQUESTS/SECONDS, such as 100/1")
    return IntervalLease(int(found[1]), float(found[2]))
