"""Opens the store at a URI."""

from __future__ import annotations

import os

from .._build import pip_command
from ..errors import StoreError
from .folder import FolderStore
from .places import Place, parse_place
from .ports import Store

__all__ = ["open_store"]


def open_store(uri: str | os.PathLike[str]) -> Store:
    """Return the store at a URI, which nothing is read from yet.

    * A path, or ``file:///path``: a folder.
    * ``s3://bucket/prefix``, ``gs://bucket/prefix``, ``az://account/container/prefix``: an object store. Options are in
      the query: ``endpoint``, ``region``, ``allow_http=true``.
    * ``memory://name``: memory of this process, for tests.
    * Others that `pyarrow.fs.FileSystem.from_uri` supports, such as ``hdfs://``: to read only.

    Credentials come from the environment (``AWS_ACCESS_KEY_ID`` and so on), or from the machine's role. They are not
    accepted in a URI, because URIs are recorded.

    Raises:
        LocalError: The URI is invalid, or contains credentials.
        StoreError: The store cannot be used, or the package for it is missing.

    """
    place = parse_place(os.fspath(uri))
    if place.scheme == "file":
        return FolderStore(place.path)
    if place.is_remote:
        return _remote(place)
    from .foreign import foreign_store

    return foreign_store(place)


def _remote(place: Place) -> Store:
    try:
        from .remote import remote_store
    except ImportError:
        raise StoreError(
            f"{place.uri}: the package obstore is missing, which object stores need; install it with "
            f"`{pip_command('store')}`"
        ) from None
    return remote_store(place)
