"""Makes the collector that a feed's configuration describes."""

from __future__ import annotations

import ssl as tls
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from ..access.certificates import load_certificate, tls_context
from ..access.given import given_setting
from ..errors import LocalError
from ..journal import Request
from ..journal.collect import Collector
from ..payload import Payload
from ..protocols import is_composite, text_form
from ..settings import Settings
from ..urls import Url, check_headers, parse_url, parse_urls
from .retry import LinkBackoff
from .sealing import seal_seconds
from .values import Reference, Text, resolve

if TYPE_CHECKING:
    import pyarrow as pa

    from .. import Bearer, Simple
    from ..journal.committer import Committer
    from .config import Auth, FeedConfig, Tls

__all__ = ["OnBatch", "check", "collector"]

BINARY: Final = "application/octet-stream"
"""The MIME type of a request's own metadata beside its credentials."""
COLLECTOR_SETS: Final = ("resume", "resume_store")
"""Settings that a feed does not choose, because its collector does."""

OnBatch: TypeAlias = "Callable[[int, pa.RecordBatch], None]"


def check(config: FeedConfig) -> None:
    """Check what can be checked without secrets, files and connections; `LocalError` if something is not valid."""
    url = parse_url(config.url)
    settings = _settings(config, {name: "x" for name in config.headers})
    auths = {"auth": config.auth, "setup.auth": config.setup and config.setup.auth}
    for key, auth in auths.items():
        if auth is not None and not is_composite(url.protocol, settings):
            raise LocalError(f"{key}: needs composite metadata, which this protocol or settings.metadata_mime excludes")
    if url.transport == "quic" and (config.tls.insecure or config.tls.cert is not None):
        raise LocalError("tls: QUIC includes TLS, for which only cafile applies")


def collector(
    name: str,
    config: FeedConfig,
    folder: Path,
    window_bytes: int | None = None,
    on_batch: OnBatch | None = None,
    committer: Committer | None = None,
) -> Collector:
    """Return a collector of a feed, with secrets and certificates as they are stored now.

    Args:
        name: The feed's name.
        config: Its configuration.
        folder: The folder that relative paths of secrets start from.
        window_bytes: As for `Collector`.
        on_batch: As for `Collector`.
        committer: As for `Collector`.

    Raises:
        LocalError: A secret or a certificate cannot be read.

    """
    headers = {header: _secret(f"headers.{header}", value, folder) for header, value in config.headers.items()}
    data = _data("data", config.data, config, folder)
    metadata = None if config.metadata is None else _secret("metadata", config.metadata, folder).encode()
    route, sent = config.route, metadata
    if config.auth is not None:
        route, sent = "", _composite(config.route, metadata, _credentials("auth", config.auth, folder))
    address, context = _tls(parse_url(config.url), config.tls)
    return Collector(
        address,
        route,
        config.journal,
        source=config.source_of(name),
        data=data,
        metadata=sent,
        budget_bytes=config.budget,
        credit=config.credit,
        settings=_settings(config, headers),
        ssl=context,
        accept_loss=config.accept_loss,
        request=Request(config.route, data, metadata, address),
        backoff=LinkBackoff(config.retry),
        window_bytes=window_bytes,
        on_batch=on_batch,
        linger=config.linger,
        committer=committer,
        segment_seconds=seal_seconds(config),
        setup=_setup(config, folder),
    )


def _setup(config: FeedConfig, folder: Path) -> Payload:
    """Return the set-up of the feed's connection."""
    setup = config.setup
    if setup is None:
        return Payload()
    data = _data("setup.data", setup.data, config, folder)
    metadata = None if setup.metadata is None else _secret("setup.metadata", setup.metadata, folder).encode()
    if setup.auth is None:
        return Payload(data, metadata)
    return Payload(data, _composite(None, metadata, _credentials("setup.auth", setup.auth, folder)))


def _secret(key: str, text: Text, folder: Path) -> str:
    try:
        return resolve(text, folder)
    except LocalError as error:
        raise LocalError(f"{key}: {error}") from None


def _data(key: str, text: Text, config: FeedConfig, folder: Path) -> bytes:
    """Return data of the file in the connection's encoding."""
    data = _secret(key, text, folder).encode()
    url = parse_url(config.url)
    form = text_form(url.protocol, url.options)
    return data if form is None or not data else form.from_json(data)


def _credentials(key: str, auth: Auth, folder: Path) -> Bearer | Simple:
    from .. import Bearer, Simple

    if auth.bearer is not None:
        return Bearer(_secret(f"{key}.bearer", auth.bearer, folder))
    if auth.user is not None and auth.password is not None:
        return Simple(auth.user, _secret(f"{key}.password", auth.password, folder))
    scheme, _, rest = _secret(key, Reference(auth.env, auth.file), folder).partition(":")
    user, colon, password = rest.partition(":")
    if scheme == "bearer" and rest:
        return Bearer(rest)
    if scheme == "simple" and colon:
        return Simple(user, password)
    raise LocalError(
        f"{key}: the place has neither bearer:TOKEN nor simple:USER:PASSWORD; for a token alone, use bearer"
    )


def _composite(route: str | None, metadata: bytes | None, auth: Bearer | Simple) -> bytes:
    """Return metadata with credentials: that of a request, or without a route that of a set-up."""
    from .. import Metadata

    entries = [] if metadata is None else [(BINARY, metadata)]
    composite = Metadata(auth=auth, entries=entries)
    return composite.encode() if route is None else composite.addressed(route)


def _settings(config: FeedConfig, headers: dict[str, str]) -> Settings:
    """Return the settings of a feed's connection; `LocalError` if they are not valid for its URL."""
    try:
        chosen = dict(given_setting(name, value, COLLECTOR_SETS) for name, value in config.settings.items())
    except ValueError as error:
        raise LocalError(f"settings.{error}") from None
    if headers:
        check_headers(parse_url(config.url).transport, "headers")
        chosen["headers"] = tuple(headers.items())
    try:
        settings = Settings(**chosen)
    except TypeError as error:
        raise LocalError(f"settings: {error}") from None
    parse_urls([config.url], settings, serving=False)
    return settings


def _tls(url: Url, files: Tls) -> tuple[str, tls.SSLContext | None]:
    """Return the URL to connect to and its TLS context; None if the URL's own options suffice."""
    if files.cafile is None and files.cert is None and not files.insecure:
        return str(url), None
    if url.transport == "quic":
        return str(replace(url, options={**url.options, "ca": str(files.cafile)})), None
    try:
        context = tls_context(tls.Purpose.SERVER_AUTH, files.cafile or url.options.get("ca"))
        if files.cert is not None:
            load_certificate(context, files.cert, files.key)
    except LocalError as error:
        raise LocalError(f"tls: {error}") from None
    if files.insecure:
        context.check_hostname = False
        context.verify_mode = tls.CERT_NONE
    return str(url), context
