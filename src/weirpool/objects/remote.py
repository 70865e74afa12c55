"""Object stores through obstore: Amazon S3 and whatever speaks its protocol, Google Cloud Storage, and Azure."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError, PermissionDeniedError, UnauthenticatedError
from obstore.store import MemoryStore, from_url

from ..errors import StoreError
from .places import Place
from .ports import Data, Listing, Names

__all__ = ["RemoteStore", "remote_store"]

_TIMEOUTS: Final = {"connect_timeout": "5s", "timeout": "60s"}
"""For one request. A segment of 64 MiB takes as long at 9 Mbit/s."""
_RETRIES: Final[dict[str, Any]] = {"max_retries": 4, "retry_timeout": timedelta(seconds=90)}
_WAITS: Final = (0.2, 0.5, 1.0, None)
"""Seconds between the attempts to create an object; None: there is no other."""
_MAX_ERROR_CHARS: Final = 300
_QUERY: Final = re.compile(r"\?\S*")
_MISSING_BUCKET: Final = ("NoSuchBucket", "ContainerNotFound", "The specified bucket does not exist")

_memory: dict[str, MemoryStore] = {}
_memory_lock = threading.Lock()


def remote_store(place: Place) -> RemoteStore:
    """Return the store at a place; `StoreError` if its settings are invalid."""
    if place.scheme == "memory":
        with _memory_lock:
            memory = _memory.setdefault(place.path, MemoryStore())
        return RemoteStore(place.uri, memory, memory)
    return RemoteStore(place.uri, _opened(place, _RETRIES), _opened(place, {"max_retries": 0}))


def _opened(place: Place, retries: Any) -> Any:
    options: Any = {name: value for name, value in place.options.items() if name != "allow_http"}
    insecure = place.options.get("allow_http") == "true" or options.get("endpoint", "").startswith("http://")
    if place.scheme == "s3":
        # Objects are deleted one by one, and not every store with S3's protocol knows the request for many.
        options["disable_bulk_delete"] = True
    client: Any = {**_TIMEOUTS, "allow_http": insecure}
    try:
        return from_url(f"{place.scheme}://{place.path}", client_options=client, retry_config=retries, **options)
    except (BaseError, ValueError) as error:
        raise StoreError(f"{place.uri}: cannot be opened ({_short(error)}); check the URI") from error


class RemoteStore:
    """A place in an object store. `once` is the same store without retries of its own."""

    conditional = True

    def __init__(self, uri: str, store: Any, once: Any) -> None:
        self.uri = uri
        self._store = store
        self._once = once

    def create(self, name: str, data: Data) -> bool:
        """Write an object unless it exists; see `Store.create`."""
        content: Data = memoryview(data).cast("B")
        uncertain = False
        for wait in _WAITS:
            try:
                with self._errors(name, "be created"):
                    obstore.put(self._once, name, content, mode="create")
            except AlreadyExistsError:
                # An earlier attempt may have written it before the network failed.
                return uncertain and self.get(name) == bytes(content)
            except _Unclear:
                uncertain = True
                if wait is None:
                    raise
                time.sleep(wait)
            else:
                return True
        raise AssertionError("the last attempt returns or raises")

    def put(self, name: str, data: Data) -> None:
        """Write or replace an object."""
        with self._errors(name, "be written"):
            obstore.put(self._store, name, memoryview(data).cast("B"))

    def get(self, name: str, start: int = 0, length: int | None = None) -> bytes | None:
        """Return a part of an object; None if there is no such object."""
        with self._errors(name, "be read"):
            try:
                if start == 0 and length is None:
                    return bytes(obstore.get(self._store, name).bytes())
                return self._range(name, start, length)
            except (NotFoundError, FileNotFoundError) as error:
                if any(text in str(error) for text in _MISSING_BUCKET):
                    raise
                return None

    def _range(self, name: str, start: int, length: int | None) -> bytes:
        # A range after the end is an error of the store.
        size = int(obstore.head(self._store, name)["size"]) if length is None else None
        stop = size if length is None else start + length
        assert stop is not None
        if start >= stop:
            return b""
        try:
            return bytes(obstore.get_range(self._store, name, start=start, end=stop))
        except BaseError:
            if start < int(obstore.head(self._store, name)["size"]):
                raise
            return b""

    def list(self, folder: str, after: str = "") -> Listing:
        """Return the objects below a folder; see `Store.list`."""
        with self._errors(folder, "be listed"):
            pages = obstore.list(self._store, prefix=folder or None, offset=after or None)
            return sorted((each["path"], each["size"]) for page in pages for each in page)

    def folders(self, folder: str = "") -> Names:
        """Return the folders in a folder."""
        with self._errors(folder, "be listed"):
            found = obstore.list_with_delimiter(self._store, prefix=folder or None)["common_prefixes"]
        return sorted(name.rstrip("/").rpartition("/")[2] for name in found)

    def delete(self, names: Iterable[str]) -> None:
        """Delete objects."""
        for name in names:
            with self._errors(name, "be deleted"):
                try:
                    obstore.delete(self._store, name)
                except (NotFoundError, FileNotFoundError) as error:
                    if any(text in str(error) for text in _MISSING_BUCKET):
                        raise

    @contextmanager
    def _errors(self, name: str, action: str) -> Iterator[None]:
        where = f"{self.uri.partition('?')[0]}: {name or 'the store'} cannot {action}"
        try:
            yield
        except AlreadyExistsError:
            raise
        except (PermissionDeniedError, UnauthenticatedError) as error:
            raise StoreError(f"{where}: access is denied ({_short(error)}); check the credentials") from error
        except (NotFoundError, FileNotFoundError) as error:
            raise StoreError(f"{where}: there is no such bucket; create it, or correct the URI") from error
        except (BaseError, OSError) as error:
            text = str(error)
            if any(sign in text for sign in _MISSING_BUCKET):
                raise StoreError(f"{where}: there is no such bucket; create it, or correct the URI") from error
            if "169.254.169.254" in text or "metadata.google" in text:
                raise StoreError(
                    f"{where}: there are no credentials; set them in the environment, such as AWS_ACCESS_KEY_ID and "
                    "AWS_SECRET_ACCESS_KEY"
                ) from error
            raise _Unclear(f"{where} ({_short(error)}); check the network and the endpoint") from error


class _Unclear(StoreError):
    """A request failed, and may have had an effect."""


def _short(error: Exception) -> str:
    """Return the first line of an error without queries of URLs, which may be signed."""
    return _QUERY.sub("", str(error).partition("\n")[0])[:_MAX_ERROR_CHARS]
