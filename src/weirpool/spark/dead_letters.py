"""The rows of a micro-batch that its receiver has rejected, as a Parquet file.

The driver writes one file for each micro-batch, when all tasks are done. Its name depends only on the query and the
micro-batch, so a micro-batch that runs again replaces it: each rejected row is there once.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import FileSystem, FileType

from ..errors import Undelivered
from ..journal.disk import disk_errors, make_folder, replace_file
from .rejection import Rejection, shown

__all__ = ["COLUMNS", "keep"]

COLUMNS: Final = pa.schema(
    [
        ("query", pa.string()),
        ("batch", pa.int64()),
        ("partition", pa.int32()),
        ("index", pa.int64()),
        ("code", pa.string()),
        ("message", pa.string()),
        ("data", pa.binary()),
        ("metadata", pa.binary()),
    ]
)


def keep(place: str, limit: int, query: str, batch: int, rejections: Sequence[Rejection]) -> None:
    """Store the rejected rows of a micro-batch, instead of those that an earlier run of it has stored.

    Args:
        place: A folder, or a URI of `pyarrow.fs`.
        limit: The maximum number of rows.
        query: The query's id.
        batch: The micro-batch.
        rejections: The rows.

    Raises:
        Undelivered: There are more rows.
        JournalError: The file cannot be written.

    """
    if len(rejections) > limit:
        raise Undelivered(
            f'{len(rejections)} rows of micro-batch {batch} were rejected, and "maxDeadLetters" is {limit}; '
            f"the first one was {shown(rejections[0])}"
        )
    name = f"{query}-{batch:020}.parquet"
    data = _parquet(query, batch, rejections) if rejections else None
    with disk_errors(place, "store rejected rows"):
        if "://" in place:
            _replace_remote(place, name, data)
        else:
            _replace(Path(place), name, data)


def _parquet(query: str, batch: int, rejections: Sequence[Rejection]) -> bytes:
    rows = [
        (query, batch, each.partition, each.index, each.code, each.message, each.data, each.metadata)
        for each in sorted(rejections, key=lambda each: (each.partition, each.index))
    ]
    columns = [pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), COLUMNS, strict=True)]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_arrays(columns, schema=COLUMNS), sink, compression="zstd")
    return bytes(sink.getvalue().to_pybytes())


def _replace(folder: Path, name: str, data: bytes | None) -> None:
    if data is None:
        (folder / name).unlink(missing_ok=True)
        return
    make_folder(folder)
    replace_file(folder / name, data)


def _replace_remote(uri: str, name: str, data: bytes | None) -> None:
    files, folder = FileSystem.from_uri(uri)
    path = f"{folder}/{name}"
    if data is None:
        if files.get_file_info(path).type is not FileType.NotFound:
            files.delete_file(path)
        return
    files.create_dir(folder, recursive=True)
    with files.open_output_stream(path) as out:
        out.write(data)
