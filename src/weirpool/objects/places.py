"""The URIs of stores."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from ..errors import LocalError

__all__ = ["Place", "parse_place"]

_REMOTE: Final = {"s3": "s3", "s3a": "s3", "gs": "gs", "az": "az", "abfs": "az", "abfss": "az", "memory": "memory"}
_OPTIONS: Final = ("endpoint", "region", "allow_http")


@dataclass(frozen=True, slots=True)
class Place:
    """A parsed URI."""

    uri: str
    """As it was given; for a folder, its absolute path."""
    scheme: str
    """"file", "s3", "gs", "az", "memory", or another one."""
    path: str
    """The rest: for a folder its path, otherwise ``bucket/prefix``."""
    options: dict[str, str] = field(default_factory=dict)
    """The options in the query."""

    @property
    def is_remote(self) -> bool:
        """True if this is an object store."""
        return self.scheme in _REMOTE.values()

    @property
    def bucket(self) -> str:
        """The bucket, or the name of a store in memory."""
        return self.path.partition("/")[0]

    @property
    def prefix(self) -> str:
        """The place within the bucket; empty for all of it."""
        return self.path.partition("/")[2]


def parse_place(uri: str) -> Place:
    """Return a parsed URI; `LocalError` if it is invalid, or contains credentials."""
    if "://" not in uri:
        path = str(Path(uri).absolute())
        return Place(path, "file", path)
    if uri.startswith("file://"):
        return _folder(uri)
    parts = urlsplit(uri)
    scheme = _REMOTE.get(parts.scheme)
    if scheme is None:
        return Place(uri, parts.scheme, unquote(parts.path))
    if "@" in parts.netloc and parts.scheme not in ("abfs", "abfss"):
        raise LocalError(
            f"the URI {parts.scheme}://…@{parts.netloc.rpartition('@')[2]} contains credentials; pass them in the "
            "environment instead, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    if "#" in uri:
        # What follows, with all options, would be ignored: another place, perhaps of another provider.
        raise LocalError(f"the URI of bucket {parts.netloc!r} contains the character #; write it as %23")
    if not parts.netloc:
        raise LocalError(f"{uri} names no bucket; write it as {parts.scheme}://bucket/prefix")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    for name in options.keys() - set(_OPTIONS):
        raise LocalError(
            f"the URI of bucket {parts.netloc!r} has the unknown option {name[:64]!r}; the options are "
            f"{', '.join(_OPTIONS)}, and credentials come from the environment"
        )
    if options.get("allow_http", "true") not in ("true", "false"):
        raise LocalError(f"the URI of bucket {parts.netloc!r}: allow_http must be true or false")
    return Place(uri, scheme, f"{parts.netloc}/{parts.path.strip('/')}".strip("/"), options)


def _folder(uri: str) -> Place:
    path = unquote(uri.removeprefix("file://").removeprefix("localhost"))
    if not path.startswith("/"):
        raise LocalError(f"the URI {uri} is not that of a folder of this machine; write it as file:///path")
    return Place(path, "file", path)
