"""Other file systems through pyarrow: to read, and to write what nobody else writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.fs

from ..errors import StoreError
from .places import Place
from .ports import Data, Listing, Names

__all__ = ["ForeignStore", "foreign_store"]


def foreign_store(place: Place) -> ForeignStore:
    """Return the store at a URI that pyarrow supports; `StoreError` if it does not."""
    with _errors(place.uri, "the store", "be opened"):
        filesystem, path = pyarrow.fs.FileSystem.from_uri(place.uri)
    return ForeignStore(place.uri, filesystem, path)


class ForeignStore:
    """A folder in a file system of `pyarrow.fs`. It has no conditional writes, so nothing can be sealed into it."""

    conditional = False

    def __init__(self, uri: str, filesystem: pyarrow.fs.FileSystem, path: str) -> None:
        self.uri = uri
        self._filesystem = filesystem
        self._path = path.rstrip("/")

    def create(self, name: str, data: Data) -> bool:
        """Raise `StoreError`: two writers would both succeed."""
        raise StoreError(
            f"{self.uri}: this store has no conditional writes, which decide between two writers; use a folder, or a "
            "store with the scheme s3, gs or az"
        )

    def put(self, name: str, data: Data) -> None:
        """Write or replace a file."""
        path = self._inner(name)
        with _errors(self.uri, name, "be written"):
            self._filesystem.create_dir(path.rpartition("/")[0], recursive=True)
            with self._filesystem.open_output_stream(path) as file:
                file.write(data)

    def get(self, name: str, start: int = 0, length: int | None = None) -> bytes | None:
        """Return a part of a file; None if there is no such file."""
        with _errors(self.uri, name, "be read"):
            try:
                with self._filesystem.open_input_file(self._inner(name)) as file:
                    start = min(start, file.size())
                    return bytes(file.read_at(file.size() - start if length is None else length, start))
            except FileNotFoundError:
                return None

    def list(self, folder: str, after: str = "") -> Listing:
        """Return the files below a folder; see `Store.list`."""
        selector = pyarrow.fs.FileSelector(self._inner(folder), allow_not_found=True, recursive=True)
        with _errors(self.uri, folder, "be listed"):
            infos = self._filesystem.get_file_info(selector)
        files = ((info.path[len(self._path) + 1 :], info.size) for info in infos if info.is_file)
        return sorted((name, size) for name, size in files if name > after)

    def folders(self, folder: str = "") -> Names:
        """Return the folders in a folder."""
        with _errors(self.uri, folder, "be listed"):
            infos = self._filesystem.get_file_info(pyarrow.fs.FileSelector(self._inner(folder), allow_not_found=True))
        return sorted(info.base_name for info in infos if info.type == pyarrow.fs.FileType.Directory)

    def delete(self, names: Iterable[str]) -> None:
        """Delete files."""
        for name in names:
            with _errors(self.uri, name, "be deleted"):
                try:
                    self._filesystem.delete_file(self._inner(name))
                except FileNotFoundError:
                    continue

    def _inner(self, name: str) -> str:
        return f"{self._path}/{name}" if name else self._path


@contextmanager
def _errors(uri: str, name: str, action: str) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise StoreError(
            f"{uri.partition('?')[0]}: {name or 'the store'} cannot {action} ({error}); check the URI, the permissions "
            "and the network"
        ) from error
