"""Asks servers for their description, on behalf of verbs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from ..aio.client import Connecting
    from ..aio.setup import ConnectionHook
    from ..reflection.description import Description
    from .connect_options import SessionOptions

__all__ = ["connecting", "fetch", "fetch_description", "request_metadata"]


def connecting(
    url: str, options: SessionOptions, data_mime: str | None = None, hook: ConnectionHook | None = None
) -> Connecting:
    """Return a connection to `url` that is not open yet.

    Args:
        url: The server.
        options: How to connect.
        data_mime: The MIME type of data, unless the options have one.
        hook: Called with the connection; see :func:`weirpool.connect`. With it, a connection that ends is not replaced.

    """
    from ..aio.client import connect

    more = {} if data_mime is None or options.data_mime is not None else {"data_mime": data_mime}
    settings = options.settings(url, **more)
    setup = options.setup_payload(url, settings)
    address, context = options.tls(url)
    reconnect: Literal[False] | None = None if hook is None else False
    return connect(address, settings=settings, setup=setup, ssl=context, on_connection=hook, reconnect=reconnect)


async def fetch(url: str, options: SessionOptions, auth: str | None = None) -> Description:
    """Connect to a server, and return its description.

    Args:
        url: The server.
        options: How to connect.
        auth: The credentials of the request, as --auth has them.

    Raises:
        NotDescribed: The server does not describe itself.
        WeirpoolError: It cannot be reached.

    """
    from ..reflection.client import describe

    metadata = request_metadata(url, options, auth)
    async with connecting(url, options) as peer:
        return await describe(peer, metadata=metadata)


async def fetch_description(url: str, options: SessionOptions, auth: str | None = None) -> dict[str, Any]:
    """Connect to a server, and return its schema in the format of `Service.schema`, from which clients are generated.

    Arguments and errors are those of :func:`fetch`.
    """
    from ..reflection.exported import exported

    return exported(await fetch(url, options, auth))


def request_metadata(url: str, options: SessionOptions, auth: str | None) -> Any:
    """Return the metadata of requests with credentials; None without."""
    if auth is None:
        return None
    from .. import Metadata
    from .connect_options import check_composite
    from .credentials import credentials

    check_composite(url, options.settings(url), "--auth needs")
    return Metadata(auth=credentials(auth))
