"""Runs from Arrow buffers: bytes and offsets in one pass, without an object for each row.

`rows.py` does the same in plain Python, and documents each function. A property test compares the two.
"""

from array import array as new_array

from cpython.array cimport array, clone
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.string cimport memcpy

from ..errors import LocalError
from ..payload import MAX_RUN_BYTES
from ..payload cimport PayloadRun

__all__ = ["RowBuffers"]

cdef long long LONGEST = MAX_RUN_BYTES
cdef array NO_ITEM = new_array("i")


cdef struct Column:
    const unsigned char* data
    Py_ssize_t size
    const int* ends
    # One bit for each row, from bit `first_bit` on; NULL if all rows are valid.
    const unsigned char* valid
    Py_ssize_t first_bit


cdef class RowBuffers:
    """The rows of two columns, from which runs are made."""

    # The memoryviews own the memory to which the columns point.
    cdef const unsigned char[::1] _data, _metadata, _valid
    cdef const int[::1] _data_ends, _metadata_ends
    cdef Column _first, _second
    cdef bint _has_metadata
    cdef Py_ssize_t _rows

    def __cinit__(
        self,
        const unsigned char[::1] data not None,
        const int[::1] data_ends not None,
        const unsigned char[::1] metadata,
        const int[::1] metadata_ends,
        const unsigned char[::1] valid,
        Py_ssize_t first_bit,
    ):
        cdef Py_ssize_t rows = data_ends.shape[0] - 1
        if rows < 0:
            raise LocalError("the offsets of the rows are missing; even no rows have one")
        if metadata_ends is not None and metadata_ends.shape[0] != rows + 1:
            raise LocalError(f"the batch has {rows} rows of data and {metadata_ends.shape[0] - 1} of metadata")
        if valid is not None and not 0 <= first_bit <= 8 * valid.shape[0] - rows:
            raise LocalError(f"{valid.shape[0]} bytes of validity bits are too few for {rows} rows from bit {first_bit}")
        self._rows = rows
        self._data, self._data_ends = data, data_ends
        self._metadata, self._metadata_ends, self._valid = metadata, metadata_ends, valid
        self._first = _column(data, data_ends, None, 0)
        self._has_metadata = metadata is not None and metadata_ends is not None
        if self._has_metadata:
            self._second = _column(metadata, metadata_ends, valid, first_bit)

    def __len__(self):
        return self._rows

    cpdef PayloadRun run(self, Py_ssize_t start=0, stop=None, long long limit=LONGEST, Py_ssize_t overhead=0):
        """Return the rows from `start` to `stop`, or the first of them if they exceed `limit`; at least one row."""
        cdef Py_ssize_t last = self._rows if stop is None else stop
        if not 0 <= start <= last <= self._rows:
            raise LocalError(f"rows {start} to {last} are not in a record batch of {self._rows} rows")
        cdef const Column* data = &self._first
        cdef const Column* metadata = &self._second if self._has_metadata else NULL
        cdef long long size = 0
        cdef Py_ssize_t row
        if metadata == NULL:
            row = _fitting(data, start, last, limit, overhead, &size)
        else:
            row = _fitting_both(data, metadata, start, last, limit, overhead, &size)
        if row < 0:
            raise _damaged(data, metadata, -1 - row)
        if size > LONGEST:
            raise LocalError(f"a run has at most {LONGEST} bytes; make several runs of these payloads")
        return _joined(start, row, size, data, metadata)


cdef Column _column(
    const unsigned char[::1] data, const int[::1] ends, const unsigned char[::1] valid, Py_ssize_t first_bit
):
    """Return a column as pointers."""
    cdef Column column
    column.data = &data[0] if data.shape[0] else NULL
    column.size = data.shape[0]
    column.ends = &ends[0]
    column.valid = &valid[0] if valid is not None and valid.shape[0] else NULL
    column.first_bit = first_bit
    return column


cdef Py_ssize_t _fitting(
    const Column* data, Py_ssize_t start, Py_ssize_t stop, long long limit, Py_ssize_t overhead, long long* size
) noexcept:
    """Return the row after the last one that fits, and set `size`; -1 - row if a row has invalid offsets."""
    cdef const int* ends = data.ends
    cdef int first = ends[start], begin = first, end
    cdef Py_ssize_t row
    if first < 0 and start < stop:
        return -1 - start
    for row in range(start, stop):
        end = ends[row + 1]
        if end < begin or end > data.size:
            return -1 - row
        if end - first + overhead * (row - start + 1) > limit and row > start:
            stop = row
            break
        begin = end
    size[0] = begin - first
    return stop


cdef Py_ssize_t _fitting_both(
    const Column* data,
    const Column* metadata,
    Py_ssize_t start,
    Py_ssize_t stop,
    long long limit,
    Py_ssize_t overhead,
    long long* size,
) noexcept:
    """Like `_fitting`, for rows that may have metadata."""
    cdef Py_ssize_t row, length, more
    for row in range(start, stop):
        length = _row_bytes(data, row)
        more = _row_bytes(metadata, row)
        if length < 0 or more < 0:
            return -1 - row
        if size[0] + length + more + overhead * (row - start + 1) > limit and row > start:
            return row
        size[0] += length + more
    return stop


cdef object _damaged(const Column* data, const Column* metadata, Py_ssize_t row):
    """Return the error for a row with invalid offsets."""
    cdef const Column* column = data if metadata == NULL or _row_bytes(data, row) < 0 else metadata
    return LocalError(
        f"row {row} is at {column.ends[row]} to {column.ends[row + 1]} of {column.size} bytes; "
        "the Arrow array is damaged"
    )


cdef inline bint _is_valid(const Column* column, Py_ssize_t row) noexcept:
    """Return whether the row is not null."""
    cdef Py_ssize_t bit = column.first_bit + row
    return column.valid == NULL or column.valid[bit >> 3] >> (bit & 7) & 1


cdef inline Py_ssize_t _row_bytes(const Column* column, Py_ssize_t row) noexcept:
    """Return the length of a row, 0 if it is null, -1 if its offsets are invalid."""
    cdef int begin = column.ends[row], end = column.ends[row + 1]
    if not _is_valid(column, row):
        return 0
    return end - begin if 0 <= begin <= end <= column.size else -1


cdef PayloadRun _joined(
    Py_ssize_t start, Py_ssize_t stop, Py_ssize_t size, const Column* data, const Column* metadata
):
    """Return a run of checked rows, which have `size` bytes."""
    cdef bytes buffer = PyBytes_FromStringAndSize(NULL, size)
    cdef array offsets = clone(NO_ITEM, 3 * (stop - start), False)
    if metadata == NULL:
        _join_data(PyBytes_AS_STRING(buffer), offsets.data.as_ints, start, stop, data)
    else:
        _join_both(PyBytes_AS_STRING(buffer), offsets.data.as_ints, start, stop, data, metadata)
    run = PayloadRun.__new__(PayloadRun)
    (<PayloadRun>run).buffer = buffer
    (<PayloadRun>run)._offsets = offsets
    (<PayloadRun>run).size = size
    (<PayloadRun>run).sound = True
    return run


cdef void _join_data(char* q, int* item, Py_ssize_t start, Py_ssize_t stop, const Column* data) noexcept:
    """Write rows without metadata, whose data is contiguous."""
    cdef const int* ends = data.ends
    cdef int first = ends[start]
    cdef Py_ssize_t row
    if ends[stop] > first:
        memcpy(q, data.data + first, ends[stop] - first)
    for row in range(start, stop):
        item[0] = -1
        item[1] = ends[row] - first
        item[2] = ends[row + 1] - first
        item += 3


cdef void _join_both(
    char* q, int* item, Py_ssize_t start, Py_ssize_t stop, const Column* data, const Column* metadata
) noexcept:
    """Write rows that may have metadata."""
    cdef Py_ssize_t row, at = 0
    for row in range(start, stop):
        item[0] = -1
        if _is_valid(metadata, row):
            item[0] = <int>at
            at += _copy_row(q + at, metadata, row)
        item[1] = <int>at
        at += _copy_row(q + at, data, row)
        item[2] = <int>at
        item += 3


cdef inline Py_ssize_t _copy_row(char* q, const Column* column, Py_ssize_t row) noexcept:
    """Write one row, and return its length."""
    cdef Py_ssize_t length = column.ends[row + 1] - column.ends[row]
    if length > 0:
        memcpy(q, column.data + column.ends[row], length)
    return length
