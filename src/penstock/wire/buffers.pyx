"""Arrow's buffers from runs, and a run from Arrow's buffers: bytes and offsets, one pass, no object a row.

`buffers.py` is the same in plain Python, and tells what each function does. A property test holds the two equal.
"""

from array import array
from typing import NamedTuple

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE, PyByteArray_Resize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.string cimport memcpy, memset

from ..errors import LocalError
from ..payload import MAX_RUN_BYTES
from ..payload cimport Payload, PayloadRun

__all__ = ["ColumnBuffers", "Taken", "run_of_buffers"]

cdef long long LONGEST = MAX_RUN_BYTES
NO_ITEM = array("i", (0, 0, 0))


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
        cdef const int[::1] view = run.offsets
        cdef const int* items = &view[3 * start]
        cdef Py_ssize_t index, metadata_size = 0
        for index in range(last - start):
            if items[3 * index] >= 0:
                metadata_size += items[3 * index + 1] - items[3 * index]
        self._reserve(last - start, size - metadata_size, metadata_size)
        self._copy(PyBytes_AS_STRING(run.buffer), items, last - start)

    cpdef void append_payload(self, Payload payload) except *:
        """Add one item."""
        cdef Py_ssize_t row = self._rows, data_size = len(payload.data), metadata_size = 0
        if payload.metadata is not None:
            metadata_size = PyBytes_GET_SIZE(payload.metadata)
        self._reserve(1, data_size, metadata_size)
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
        _grow(self._metadata_ends, (all_rows + 1) * sizeof(int))
        cdef Py_ssize_t before = PyByteArray_GET_SIZE(self._valid)
        _grow(self._valid, (all_rows + 7) >> 3)
        memset(PyByteArray_AS_STRING(self._valid) + before, 0, PyByteArray_GET_SIZE(self._valid) - before)
        self.size += data_size + metadata_size

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


cpdef PayloadRun run_of_buffers(
    const unsigned char[::1] data,
    const int[::1] data_ends,
    const unsigned char[::1] metadata,
    const int[::1] metadata_ends,
    const unsigned char[::1] valid,
    Py_ssize_t first_bit,
    Py_ssize_t start,
    Py_ssize_t stop,
    long long most,
    Py_ssize_t each,
):
    """Return the run whose items are rows of two columns: from `start` up to `stop`, or until the next is too much."""
    cdef Py_ssize_t rows = data_ends.shape[0] - 1, row
    if metadata_ends is not None and metadata_ends.shape[0] != rows + 1:
        raise LocalError(f"{rows} rows of data were given with {metadata_ends.shape[0] - 1} of metadata")
    if valid is not None and valid.shape[0] < (first_bit + rows + 7) >> 3:
        raise LocalError(f"{valid.shape[0]} bytes of validity bits were given for {rows} rows from bit {first_bit}")
    if not 0 <= start <= stop <= rows:
        raise LocalError(f"rows {start} to {stop} were asked of a record batch of {rows}")
    cdef bint has_metadata = metadata is not None and metadata_ends is not None
    cdef long long size = 0, more
    for row in range(start, stop):
        more = _row_bytes(data_ends, row, data.shape[0])
        if has_metadata and _is_valid(valid, first_bit + row):
            more += _row_bytes(metadata_ends, row, metadata.shape[0])
        if row > start and size + more + each * (row - start + 1) > most:
            stop = row
            break
        size += more
    if size > LONGEST:
        raise LocalError(f"a run holds at most {LONGEST} bytes; make several of these payloads")
    return _joined(start, stop, size, data, data_ends, metadata, metadata_ends, valid, first_bit)


cdef inline Py_ssize_t _row_bytes(const int[::1] ends, Py_ssize_t row, Py_ssize_t limit) except -1:
    """Return how long one row is; refuse one that lies outside its bytes."""
    if not 0 <= ends[row] <= ends[row + 1] <= limit:
        raise LocalError(
            f"row {row} lies at {ends[row]} to {ends[row + 1]} in {limit} bytes; the Arrow array is damaged"
        )
    return ends[row + 1] - ends[row]


cdef inline bint _is_valid(const unsigned char[::1] valid, Py_ssize_t bit) noexcept:
    """Return whether the bit is set."""
    return valid is None or valid[bit >> 3] >> (bit & 7) & 1


cdef PayloadRun _joined(
    Py_ssize_t start,
    Py_ssize_t stop,
    Py_ssize_t size,
    const unsigned char[::1] data,
    const int[::1] data_ends,
    const unsigned char[::1] metadata,
    const int[::1] metadata_ends,
    const unsigned char[::1] valid,
    Py_ssize_t first_bit,
):
    """Return the run, `size` bytes, of rows that were checked."""
    cdef bytes buffer = PyBytes_FromStringAndSize(NULL, size)
    cdef char* q = PyBytes_AS_STRING(buffer)
    offsets = NO_ITEM * (stop - start)
    cdef int[::1] items = offsets
    cdef int* item = NULL
    cdef bint has_metadata = metadata is not None and metadata_ends is not None
    cdef Py_ssize_t row, length, at = 0
    if start < stop:
        item = &items[0]
    for row in range(start, stop):
        item[0] = -1
        if has_metadata and _is_valid(valid, first_bit + row):
            item[0] = <int>at
            length = metadata_ends[row + 1] - metadata_ends[row]
            if length > 0:
                memcpy(q + at, &metadata[metadata_ends[row]], length)
            at += length
        item[1] = <int>at
        length = data_ends[row + 1] - data_ends[row]
        if length > 0:
            memcpy(q + at, &data[data_ends[row]], length)
        at += length
        item[2] = <int>at
        item += 3
    run = PayloadRun.__new__(PayloadRun)
    (<PayloadRun>run).buffer = buffer
    (<PayloadRun>run).offsets = offsets
    (<PayloadRun>run).size = size
    return run
