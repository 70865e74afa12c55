"""The sockets of listeners: bound here, or inherited from another process."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import socket
import stat
import struct
from contextlib import suppress
from typing import Final

from ..errors import UrlError
from ..networks import USER
from ..urls import Url

__all__ = ["ABSTRACT", "FILE_OPTIONS", "FileOfSocket", "listening_sockets", "readable", "user_of"]

FILE_OPTIONS: Final = ("group", "mode")
"""The options of a server's URL for the file of its Unix socket."""
ABSTRACT: Final = "\0"
"""What the path of an abstract socket begins with. It has no file."""
CREDENTIALS: Final = struct.Struct("iII")
"""A peer's process, user and group. See unix(7), SO_PEERCRED."""
BACKLOG: Final = 1_024
"""Connections that the system queues until they are accepted."""
MAX_DIGITS: Final = 9
MAX_MODE: Final = 0o777


class FileOfSocket:
    """The file of a Unix socket that was bound to `path`; without a path, or with an abstract one, there is none."""

    def __init__(self, path: str) -> None:
        self._path = "" if path.startswith(ABSTRACT) else path
        path = self._path
        self._found = _file_at(path)

    def remove(self) -> None:
        """Remove the file, unless it is another one by now. Call this before the socket is closed."""
        # A successor may have put its own socket there. Until ours is closed, no other file gets its inode number.
        if self._found is not None and _file_at(self._path) == self._found:
            with suppress(FileNotFoundError):
                os.unlink(self._path)
            # A successor's file may get its inode number now.
            self._found = None


async def listening_sockets(url: Url) -> list[socket.socket]:
    """Return sockets that listen at `url`: those of its option `fd`, or new ones.

    Raises UrlError if `fd` does not name sockets that can listen there, and OSError if the address cannot be bound.
    """
    if "fd" in url.options:
        sockets = _inherited(url)
    else:
        sockets = [_bound_unix(url)] if url.transport == "unix" else await _bound(url)
    for listening in sockets:
        listening.setblocking(False)
        listening.listen(BACKLOG)
    return sockets


async def readable(loop: asyncio.AbstractEventLoop, listening: socket.socket) -> None:
    """Wait until there is a link to accept."""
    arrived: asyncio.Future[None] = loop.create_future()

    def ready() -> None:
        if not arrived.done():
            arrived.set_result(None)

    loop.add_reader(listening, ready)
    try:
        await arrived
    finally:
        loop.remove_reader(listening)


def _inherited(url: Url) -> list[socket.socket]:
    """Return duplicates of the sockets whose descriptors the URL names, separated by commas."""
    sockets: list[socket.socket] = []
    try:
        sockets.extend(_duplicate(url, number) for number in url.options["fd"].split(","))
    except UrlError:
        for listening in sockets:
            listening.close()
        raise
    return sockets


def _duplicate(url: Url, number: str) -> socket.socket:
    """Return a duplicate of a listening socket. The descriptor stays open, so that others can inherit it, too."""
    if not (number.isascii() and number.isdigit() and len(number) <= MAX_DIGITS):
        raise UrlError(f"'{url}': descriptor {number!r} is not a number; write ?fd=3, or ?fd=3,4")
    try:
        given = socket.socket(fileno=int(number))
    except OSError as error:
        why = f"descriptor {number} is not an open socket ({error.strerror}); check that it is passed to this process"
        raise UrlError(f"'{url}': {why}") from error
    try:
        listening = given.dup()
    finally:
        given.detach()
    unix = listening.family == getattr(socket, "AF_UNIX", None)
    if not listening.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) or unix != (url.transport == "unix"):
        listening.close()
        raise UrlError(f"'{url}': descriptor {number} is not a listening socket for this transport")
    return listening


async def _bound(url: Url) -> list[socket.socket]:
    """Return sockets bound to all addresses of the URL's host, with the same port."""
    loop = asyncio.get_running_loop()
    port = url.port or 0
    if not url.host:
        return [_bound_to_all(port)]
    infos = await loop.getaddrinfo(url.host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    sockets: list[socket.socket] = []
    try:
        for family, _, _, _, address in infos:
            sockets.append(socket.create_server((address[0], port, *address[2:]), family=family))
            port = sockets[0].getsockname()[1]
    except OSError:
        for listening in sockets:
            listening.close()
        raise
    return sockets


def _bound_to_all(port: int) -> socket.socket:
    """Return a socket that listens on all interfaces, over IPv6 and IPv4, or IPv4 only if there is no IPv6."""
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
        except OSError as error:
            if error.errno not in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL):
                raise
    return socket.create_server(("", port))


def _bound_unix(url: Url) -> socket.socket:
    path = url.path
    mode, group = _mode_of(url), _group_of(url)
    abstract = path.startswith(ABSTRACT)
    if abstract and (mode, group) != (None, None):
        raise UrlError(f"'{url}': an abstract socket has no file, and no mode or group; any local user may connect")
    listening = socket.socket(socket.AF_UNIX)
    try:
        if not abstract and _is_stale(path):
            os.unlink(path)
        listening.bind(path)
        _permit(path, mode, group)
    except OSError:
        listening.close()
        raise
    return listening


def _permit(path: str, mode: int | None, group: int | None) -> None:
    """Set the mode and group of a new file, or remove it. Nobody can connect before its socket listens."""
    try:
        if group is not None:
            os.chown(path, -1, group)
        if mode is not None:
            os.chmod(path, mode)
    except OSError:
        os.unlink(path)
        raise


def _mode_of(url: Url) -> int | None:
    """Return the mode of the file that the URL asks for; None for that of the process's umask."""
    text = url.options.get("mode")
    if text is None:
        return None
    if not re.fullmatch("[0-7]{3,4}", text) or int(text, 8) > MAX_MODE:
        raise UrlError(f"'{url}': mode {text!r} is not three octal digits; write ?mode=660")
    return int(text, 8)


def _group_of(url: Url) -> int | None:
    """Return the id of the group that the URL asks for; None for that of the process."""
    text = url.options.get("group")
    if text is None:
        return None
    if text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS:
        return int(text)
    try:
        # Not on Windows.
        from grp import getgrnam

        return getgrnam(text).gr_gid
    except (ImportError, KeyError):
        raise UrlError(f"'{url}': there is no group {text!r} on this machine") from None


def user_of(connection: socket.socket) -> str:
    """Return the user at the other end of a Unix socket, as an address; empty if the system does not tell it."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return ""
    _, user, _ = CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, option, CREDENTIALS.size))
    return f"{USER}{user}"


def _file_at(path: str) -> tuple[int, int] | None:
    """Return what identifies the file at `path`; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _is_stale(path: str) -> bool:
    """Return True if `path` is a socket without a listener."""
    try:
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            return False
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(path)
    except OSError as error:
        return isinstance(error, ConnectionRefusedError)
    return False
