"""Completion of routes: asks the server in the command that is typed, and remembers the answer for a short time."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import msgspec

from ..access.private import replacing
from ..errors import LocalError
from ..kinds import KIND_NAMES
from .values import completable

__all__ = ["SWITCH", "offered_routes", "routes_at"]

SWITCH: Final = "WEIRPOOL_COMPLETE_ROUTES"
"""The environment variable that switches this off, if it is 0."""
SECONDS: Final = 0.5
"""How long a shell may wait for candidates."""
FRESH_SECONDS: Final = 30.0
FAILED_SECONDS: Final = 5.0
"""How long it is remembered that a server has not answered: each press of the key would wait for it again."""
MAX_ROUTES: Final = 2_000
"""More would be of no use to a person, and take long in a shell."""
MAX_CHARACTERS: Final = 100
MAX_FILES: Final = 64
MAX_BYTES: Final = 1_000_000

EMPTY: Final[Mapping[str, Any]] = {}


class _Remembered(msgspec.Struct):
    """Routes of a server by their kind; None if it has not answered."""

    time: float
    routes: list[tuple[str, str]] | None


def offered_routes(ctx: Any, args: list[str], incomplete: str) -> list[str]:
    """Return the routes that complete a word of a command. A completion callback of typer.

    Args:
        ctx: The context of the parser, with the values that have been read.
        args: The words before this one, if the context has none.
        incomplete: The beginning of the word.

    """
    given = ctx.params.get("url") or next((word for word in args if "://" in word), "")
    return routes_at(given, incomplete, ctx.info_name if ctx.info_name in KIND_NAMES else None, ctx.params)


def routes_at(url: str, prefix: str = "", kind: str | None = None, params: Mapping[str, Any] = EMPTY) -> list[str]:
    """Return the routes of a server that begin with `prefix`, for completion. It never fails and never prints.

    Args:
        url: The server. It must describe itself.
        prefix: The beginning.
        kind: Only routes of this kind, in lower case.
        params: The values of options, by the names of their parameters: those of the connection and `auth` are used.

    """
    if not url or os.environ.get(SWITCH) == "0":
        return []
    with suppress(Exception):
        used = _used(params)
        file = _file(url, used)
        known = _remembered(file)
        if known is None:
            known = _Remembered(time.time(), _asked(url, used))
            _remember(file, known)
        found = known.routes or []
        names = {route for each, route in found if route.startswith(prefix) and kind in (None, each)}
        # Shells read a brace that is typed as the beginning of an expansion, and complete what is after it.
        return [] if "{" in prefix else completable(sorted(names))
    return []


def _used(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that matter to a server."""
    from .connect_options import SessionOptions

    names = {"auth", *(each.name for each in fields(SessionOptions))} - {"options", "saved_context"}
    return {name: value for name, value in sorted(params.items()) if name in names and value}


def _asked(url: str, used: Mapping[str, Any]) -> list[tuple[str, str]] | None:
    """Return the routes of a server; None if it does not tell them in time."""
    import asyncio

    # Imported here, so that the time is the server's.
    from ..aio import client  # noqa: F401
    from ..reflection import exported  # noqa: F401
    from .connect_options import SessionOptions
    from .reflecting import fetch

    options = SessionOptions(**{name: value for name, value in used.items() if name != "auth"})

    async def ask() -> list[tuple[str, str]]:
        async with asyncio.timeout(SECONDS):
            routes = (await fetch(url, options, used.get("auth"))).routes
            short: list[tuple[str, str]] = [
                (each.kind, each.route) for each in routes if len(each.route) <= MAX_CHARACTERS
            ]
            return short[:MAX_ROUTES]

    try:
        return asyncio.run(ask())
    except Exception:  # Whatever is wrong with a server, a shell shows no error; the failure is remembered for a while.
        return None


def _folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "weirpool" / "routes"


def _file(url: str, used: Mapping[str, Any]) -> Path:
    # A server may tell others less.
    key = repr((url, used))
    return _folder() / f"{hashlib.sha256(key.encode(errors='surrogateescape')).hexdigest()[:32]}.json"


def _remembered(file: Path) -> _Remembered | None:
    with suppress(OSError, msgspec.DecodeError):
        if file.stat().st_size <= MAX_BYTES:
            known = msgspec.json.decode(file.read_bytes(), type=_Remembered)
            age = time.time() - known.time
            if 0 <= age < (FAILED_SECONDS if known.routes is None else FRESH_SECONDS):
                return known
    return None


def _remember(file: Path, known: _Remembered) -> None:
    with suppress(OSError, LocalError):
        folder = file.parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        files = sorted(folder.glob("*.json"), key=lambda file: file.stat().st_mtime)
        for old in files[: max(0, len(files) - MAX_FILES + 1)]:
            old.unlink(missing_ok=True)
        # All at once, because another shell may read it.
        with replacing(file) as new:
            new.write(msgspec.json.encode(known))
