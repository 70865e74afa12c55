"""The names that Hadoop's file systems have for the objects of a store."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

__all__ = ["hadoop_paths", "hadoop_uri"]

_SCHEMES: Final = {"s3": "s3a"}
_PATTERN: Final = re.compile(r"[\\*?\[\]{}]")


def hadoop_uri(store: str, name: str = "") -> str:
    """Return the URI of an object, or of a whole store, for Spark.

    Despite their name, Hadoop's URIs are not percent-encoded. Endpoints, regions and credentials of a store are
    settings of Spark, such as ``spark.hadoop.fs.s3a.endpoint``.
    """
    if "://" not in store:
        root = f"file://{Path(store).absolute()}"
    else:
        parts = urlsplit(store)
        path = unquote(parts.path)
        root = f"{_SCHEMES.get(parts.scheme, parts.scheme)}://{parts.netloc}{path}".rstrip("/")
        if parts.scheme == "az":
            container, _, prefix = path.strip("/").partition("/")
            root = f"abfss://{container}@{parts.netloc}.dfs.core.windows.net/{prefix}".rstrip("/")
    return f"{root}/{name}" if name else root


def hadoop_paths(store: str, names: list[str]) -> list[str]:
    """Return the URIs of objects where Spark expects patterns."""
    return [_PATTERN.sub(r"\\\g<0>", hadoop_uri(store, name)) for name in names]
