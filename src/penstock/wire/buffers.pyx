"""Arrow's buffers from runs, and a run from Arrow's buffers: bytes and offsets, one pass, no object a row.

`buffers.py` is the same in plain Python, and tells what each function does. A property test holds the two equal.
"""

from array import array as new_array
from typing import NamedTuple

from cpython.array cimport array, clone
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE, PyByteArray_Resize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.string cimport memcpy, memset

from ..errors import LocalError
from ..payload import MAX_RUN_BYTES
from ..payload cimport Payload, PayloadRun

__all__ = ["ColumnBuffers", "RowBuffers", "Taken"]

cdef long long LONGEST = MAX_RUN_BYTES
cdef array NO_ITEM = new_array("i")


class Taken(NamedTuple):
    """The buffers of two columns, as Arrow's binary type has them."""

    rows: int
    data: bytearray
    data_ends: bytearray
    metadata: bytearray
    metadata_ends: bytearray
    valid: bytearray
    nulls: int


cdef class ColumnBuffers:
    """Collects rows of data and metadata. Each bytearray has room to spare; `_rows` and `*_used` say what is taken."""

    cdef readonly Py_ssize_t size
    cdef Py_ssize_t _rows, _nulls, _data_used, _metadata_used
    # What the last batch came to: the next one is likely alike, and growing by steps costs copies.
    cdef Py_ssize_t _rows_before, _data_before, _metadata_before
    cdef bytearray _data, _data_ends, _metadata, _metadata_ends, _valid

    def __cinit__(self):
        self._clear()

    cdef void _clear(self) except *:
        self._rows_before = self._rows
        self._data_before = self._data_used
        self._metadata_before = self._metadata_used
        self.size = self._rows = self._nulls = self._data_used = self._metadata_used = 0
        self._data = bytearray()
        self._data_ends = bytearray(sizeof(int))
        self._metadata = bytearray()
        self._metadata_ends = bytearray(sizeof(int))
        self._valid = bytearray()

    def __len__(self):
        return self._rows

    cpdef void append(self, PayloadRun run, Py_ssize_t start=0, stop=None) except *:
        """Add the items of `run` from index `start` to `stop`."""
        cdef Py_ssize_t last = len(run) if stop is None else stop
        cdef Py_ssize_t size = run.check(start, last)
        if start == last:
            return
        # Checked: the offsets are there, and are 32-bit integers.
        cdef const int* items = (<array?>run.offsets).data.as_ints + 3 * start
        cdef Py_ssize_t index, metadata_size = 0, nulls = 0
        for index in range(last - start):
            if items[3 * index] < 0:
                nulls += 1
            else:
                metadata_size += items[3 * index + 1] - items[3 * index]
        self._reserve(last - start, size - metadata_size, metadata_size)
        if nulls == last - start and self._nulls == self._rows:
            self._copy_data(PyBytes_AS_STRING(run.buffer), items, last - start)
        else:
            self._begin_metadata()
            self._copy(PyBytes_AS_STRING(run.buffer), items, last - start)

    cpdef void append_payload(self, Payload payload) except *:
        """Add one item."""
        cdef Py_ssize_t row = self._rows, data_size = len(payload.data), metadata_size = 0
        if payload.metadata is not None:
            metadata_size = PyBytes_GET_SIZE(payload.metadata)
        self._reserve(1, data_size, metadata_size)
        self._begin_metadata()
        memcpy(PyByteArray_AS_STRING(self._data) + self._data_used, PyBytes_AS_STRING(payload.data), data_size)
        self._data_used += data_size
        (<int*>PyByteArray_AS_STRING(self._data_ends))[row + 1] = <int>self._data_used
        if payload.metadata is None:
            self._nulls += 1
        else:
            memcpy(
                PyByteArray_AS_STRING(self._metadata) + self._metadata_used,
                PyBytes_AS_STRING(payload.metadata),
                metadata_size,
            )
            self._metadata_used += metadata_size
            (<unsigned char*>PyByteArray_AS_STRING(self._valid))[row >> 3] |= 1 << (row & 7)
        (<int*>PyByteArray_AS_STRING(self._metadata_ends))[row + 1] = <int>self._metadata_used
        self._rows = row + 1

    cdef void _reserve(self, Py_ssize_t rows, Py_ssize_t data_size, Py_ssize_t metadata_size) except *:
        """Make room for `rows` more rows; refuse what 32-bit offsets could not tell the end of."""
        if self.size + data_size + metadata_size > LONGEST:
            raise LocalError(f"a record batch holds at most {LONGEST} bytes; finish this one first")
        cdef Py_ssize_t all_rows = max(self._rows + rows, self._rows_before)
        _grow(self._data, max(self._data_used + data_size, self._data_before))
        _grow(self._metadata, max(self._metadata_used + metadata_size, self._metadata_before))
        _grow(self._data_ends, (all_rows + 1) * sizeof(int))
        self.size += data_size + metadata_size

    cdef void _begin_metadata(self) except *:
        """Make room for the metadata of the rows that `_reserve` was asked for: while no row has any, none is kept."""
        cdef Py_ssize_t ends = PyByteArray_GET_SIZE(self._metadata_ends), bits = PyByteArray_GET_SIZE(self._valid)
        cdef Py_ssize_t room = PyByteArray_GET_SIZE(self._data_ends)
        if ends < room:
            PyByteArray_Resize(self._metadata_ends, room)
            PyByteArray_Resize(self._valid, (room // sizeof(int) + 7) >> 3)
            memset(PyByteArray_AS_STRING(self._metadata_ends) + ends, 0, room - ends)
            memset(PyByteArray_AS_STRING(self._valid) + bits, 0, PyByteArray_GET_SIZE(self._valid) - bits)

    cdef void _copy_data(self, const char* p, const int* item, Py_ssize_t count) noexcept:
        """Add `count` rows of which none has metadata, as none before."""
        cdef char* data = PyByteArray_AS_STRING(self._data)
        cdef int* ends = <int*>PyByteArray_AS_STRING(self._data_ends) + self._rows + 1
        cdef Py_ssize_t used = self._data_used, row, size
        for row in range(count):
            size = item[2] - item[1]
            memcpy(data + used, p + item[1], size)
            used += size
            ends[row] = <int>used
            item += 3
        self._data_used = used
        self._nulls += count
        self._rows += count

    cdef void _copy(self, const char* p, const int* item, Py_ssize_t count) noexcept:
        """Add `count` rows that were checked, and for which `_reserve` has made room."""
        cdef char* data = PyByteArray_AS_STRING(self._data)
        cdef char* metadata = PyByteArray_AS_STRING(self._metadata)
        cdef int* data_ends = <int*>PyByteArray_AS_STRING(self._data_ends)
        cdef int* metadata_ends = <int*>PyByteArray_AS_STRING(self._metadata_ends)
        cdef unsigned char* valid = <unsigned char*>PyByteArray_AS_STRING(self._valid)
        cdef Py_ssize_t data_used = self._data_used, metadata_used = self._metadata_used, row, size
        for row in range(self._rows, self._rows + count):
            size = item[2] - item[1]
            memcpy(data + data_used, p + item[1], size)
            data_used += size
            data_ends[row + 1] = <int>data_used
            if item[0] < 0:
                self._nulls += 1
            else:
                size = item[1] - item[0]
                memcpy(metadata + metadata_used, p + item[0], size)
                metadata_used += size
                valid[row >> 3] |= 1 << (row & 7)
            metadata_ends[row + 1] = <int>metadata_used
            item += 3
        self._data_used = data_used
        self._metadata_used = metadata_used
        self._rows += count

    cpdef object take(self):
        """Return what was collected, and forget it."""
        self._begin_metadata()
        PyByteArray_Resize(self._data, self._data_used)
        PyByteArray_Resize(self._metadata, self._metadata_used)
        PyByteArray_Resize(self._data_ends, (self._rows + 1) * sizeof(int))
        PyByteArray_Resize(self._metadata_ends, (self._rows + 1) * sizeof(int))
        PyByteArray_Resize(self._valid, (self._rows + 7) >> 3)
        taken = Taken(
            self._rows, self._data, self._data_ends, self._metadata, self._metadata_ends, self._valid, self._nulls
        )
        self._clear()
        return taken


cdef void _grow(bytearray octets, Py_ssize_t need) except *:
    """Give `octets` at least `need` bytes, and at least twice what it has, so that growing is rare."""
    cdef Py_ssize_t have = PyByteArray_GET_SIZE(octets)
    if need > have:
        PyByteArray_Resize(octets, max(need, 2 * have))


cdef struct Column:
    const unsigned char* octets
    Py_ssize_t size
    const int* ends
    # A bit a row, from bit `first_bit` on; NULL when all rows are valid.
    const unsigned char* valid
    Py_ssize_t first_bit


cdef class RowBuffers:
    """The rows of two columns, from which runs are cut."""

    # The memoryviews hold what the columns point to.
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
        if metadata_ends is not None and metadata_ends.shape[0] != rows + 1:
            raise LocalError(f"{rows} rows of data were given with {metadata_ends.shape[0] - 1} of metadata")
        if valid is not None and valid.shape[0] < (first_bit + rows + 7) >> 3:
            raise LocalError(f"{valid.shape[0]} bytes of validity bits were given for {rows} rows from bit {first_bit}")
        self._rows = rows
        self._data, self._data_ends = data, data_ends
        self._metadata, self._metadata_ends, self._valid = metadata, metadata_ends, valid
        self._first = _column(data, data_ends, None, 0)
        self._has_metadata = metadata is not None and metadata_ends is not None
        if self._has_metadata:
            self._second = _column(metadata, metadata_ends, valid, first_bit)

    def __len__(self):
        return self._rows

    cpdef PayloadRun run(self, Py_ssize_t start=0, stop=None, long long most=LONGEST, Py_ssize_t each=0):
        """Return the rows from `start` to `stop`, or as many of them as cost at most `most`, at least one."""
        cdef Py_ssize_t last = self._rows if stop is None else stop
        if not 0 <= start <= last <= self._rows:
            raise LocalError(f"rows {start} to {last} were asked of a record batch of {self._rows}")
        cdef const Column* data = &self._first
        cdef const Column* metadata = &self._second if self._has_metadata else NULL
        cdef Py_ssize_t row, length, more = 0
        cdef long long size = 0
        for row in range(start, last):
            length = _row_bytes(data, row)
            if metadata != NULL:
                more = _row_bytes(metadata, row)
            if length < 0 or more < 0:
                raise _damaged(data if length < 0 else metadata, row)
            if row > start and size + length + more + each * (row - start + 1) > most:
                last = row
                break
            size += length + more
        if size > LONGEST:
            raise LocalError(f"a run holds at most {LONGEST} bytes; make several of these payloads")
        return _joined(start, last, size, data, metadata)


cdef Column _column(
    const unsigned char[::1] octets, const int[::1] ends, const unsigned char[::1] valid, Py_ssize_t first_bit
):
    """Return a column as pointers."""
    cdef Column column
    column.octets = &octets[0] if octets.shape[0] else NULL
    column.size = octets.shape[0]
    column.ends = &ends[0]
    column.valid = &valid[0] if valid is not None and valid.shape[0] else NULL
    column.first_bit = first_bit
    return column


cdef object _damaged(const Column* column, Py_ssize_t row):
    """Return the error for a row that lies outside its bytes."""
    return LocalError(
        f"row {row} lies at {column.ends[row]} to {column.ends[row + 1]} in {column.size} bytes; "
        "the Arrow array is damaged"
    )


cdef inline bint _is_valid(const Column* column, Py_ssize_t row) noexcept:
    """Return whether the row is none that is null."""
    cdef Py_ssize_t bit = column.first_bit + row
    return column.valid == NULL or column.valid[bit >> 3] >> (bit & 7) & 1


cdef inline Py_ssize_t _row_bytes(const Column* column, Py_ssize_t row) noexcept:
    """Return how long one row is, 0 where it is null, -1 where it lies outside its bytes."""
    cdef int begin = column.ends[row], end = column.ends[row + 1]
    if not _is_valid(column, row):
        return 0
    return end - begin if 0 <= begin <= end <= column.size else -1


cdef PayloadRun _joined(
    Py_ssize_t start, Py_ssize_t stop, Py_ssize_t size, const Column* data, const Column* metadata
):
    """Return the run, `size` bytes, of rows that were checked."""
    cdef bytes buffer = PyBytes_FromStringAndSize(NULL, size)
    cdef array offsets = clone(NO_ITEM, 3 * (stop - start), False)
    if metadata == NULL:
        _join_data(PyBytes_AS_STRING(buffer), offsets.data.as_ints, start, stop, data)
    else:
        _join_both(PyBytes_AS_STRING(buffer), offsets.data.as_ints, start, stop, data, metadata)
    run = PayloadRun.__new__(PayloadRun)
    (<PayloadRun>run).buffer = buffer
    (<PayloadRun>run).offsets = offsets
    (<PayloadRun>run).size = size
    (<PayloadRun>run).sound = True
    return run


cdef void _join_data(char* q, int* item, Py_ssize_t start, Py_ssize_t stop, const Column* data) noexcept:
    """Write rows without metadata: their data lies together already."""
    cdef const int* ends = data.ends
    cdef int first = ends[start]
    cdef Py_ssize_t row
    if ends[stop] > first:
        memcpy(q, data.octets + first, ends[stop] - first)
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
    """Write one row; return how long it is."""
    cdef Py_ssize_t length = column.ends[row + 1] - column.ends[row]
    if length > 0:
        memcpy(q, column.octets + column.ends[row], length)
    return length
