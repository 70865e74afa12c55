"""Requests as commands for a shell and as Python: what people copy to repeat them elsewhere."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from ..errors import LocalError, Mismatch
from ..kinds import KIND_NAMES
from ..protocols import connection_settings
from ..schema.formats import JSON, MSGPACK, format_of
from ..settings import DEFAULT_SETTINGS
from ..strict_json import strict_json
from ..texts import shell_line, shell_word
from ..urls import parse_url

__all__ = ["as_command", "as_python"]

WITH_ITEMS: Final = ("upload", "channel")


def as_command(
    url: str, route: str, kind: str, data: str = "", items: Sequence[str] = (), options: Sequence[str] = ()
) -> str:
    """Return a request as a command to paste into bash or zsh. It has no control characters.

    Args:
        url: The server.
        route: The route.
        kind: The kind, in lower case.
        data: The data of the request.
        items: The items after the request, for uploads and channels.
        options: Further words of the command, not quoted.

    Raises:
        LocalError: There is no such kind, or a text cannot be an argument of a command.

    """
    _check_kind(kind)
    sends = kind in WITH_ITEMS
    # A line is an item: others are written as JSON.
    objects = any("\n" in item or "\r" in item or not item for item in items)
    more = [*options, *(["--json-items"] if objects else [])]
    before, given = "", shell_word(data)
    if sends:
        printed = [json.dumps({"data": item}, ensure_ascii=False) if objects else item for item in items]
        before = f"printf '%s\\n' {shell_line(printed)} | " if printed else "printf '' | "
    if data.startswith("@") or data == "-":
        # -d would read a file or standard input, which an upload uses for its items.
        printing = f"printf %s {given}"
        before, given = (before, f"@<({printing})") if sends else (f"{printing} | ", "-")
    places = [url, route, *(["-"] if sends else [])]
    chosen = [*(["-d", given] if data else []), *map(shell_word, more)]
    written = [*map(shell_word, places)]
    words = [*chosen, "--", *written] if route.startswith("-") else [*written, *chosen]
    return before + " ".join(["weirpool", kind, *words])


def as_python(
    url: str, route: str, kind: str, data: str = "", items: Sequence[str] = (), settings: dict[str, Any] | None = None
) -> str:
    """Return a request as a Python program.

    Args:
        url: The server.
        route: The route.
        kind: The kind, in lower case.
        data: The data of the request. JSON becomes a value, if the data of the connection is that of values.
        items: The items after the request.
        settings: Settings that are not the default.

    Raises:
        LocalError: There is no such kind.

    """
    _check_kind(kind)
    values = [*([data] if data else []), *items]
    typed = bool(values) and _is_typed(url, settings or {}) and _is_json(values)
    read = _literal if typed else repr
    arguments = [repr(route)]
    if data or kind in WITH_ITEMS:
        # None would be sent as null.
        arguments.append(read(data) if data or not typed else "weirpool.Payload()")
    if kind in WITH_ITEMS:
        arguments.append(f"[{', '.join(map(read, items))}]")
    call = f"{'client' if typed else 'peer'}.{kind}({', '.join(arguments)})"
    shown = "response" if typed else "response.data.decode()"
    body = [f"    settings = weirpool.Settings({_keywords(settings)})"] if settings else []
    body.append(f"    async with weirpool.connect({url!r}{', settings=settings' if settings else ''}) as peer:")
    body += ["        client = weirpool.typed(peer)"] if typed else []
    if kind == "fire":
        body.append(f"        await {call}")
    elif kind in ("stream", "channel"):
        body += [f"        async with {call} as responses:", "            async for response in responses:"]
        body.append(f"                print({shown})")
    else:
        body += [f"        response = await {call}", f"        print({shown})"]
    head = ["import asyncio", "", "import weirpool", "", "", "async def main() -> None:"]
    return "\n".join([*head, *body, "", "", "asyncio.run(main())", ""])


def _check_kind(kind: str) -> None:
    """Raise LocalError for another kind: it becomes the name of a verb and of a method, which cannot be quoted."""
    if kind not in KIND_NAMES:
        raise LocalError(f"there is no kind {kind!r}; kinds are {', '.join(KIND_NAMES)}")


def _is_typed(url: str, settings: dict[str, Any]) -> bool:
    """Return True if people write the data of a connection as JSON, from which values are made."""
    parsed = parse_url(url)
    chosen = replace(DEFAULT_SETTINGS, data_mime=settings.get("data_mime", DEFAULT_SETTINGS.data_mime))
    form = format_of(connection_settings(parsed.protocol, chosen, parsed.options).data_mime)
    # The bytes of msgpack are sent as they are written.
    return form not in (None, MSGPACK)


def _is_json(texts: Sequence[str]) -> bool:
    try:
        for text in texts:
            JSON.check_depth(text.encode(errors="replace"))
            strict_json(text)
    except (ValueError, Mismatch):
        return False
    return True


def _literal(text: str) -> str:
    return repr(json.loads(text))


def _keywords(settings: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in settings.items())
