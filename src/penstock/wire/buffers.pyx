"""Arrow's buffers from runs, and a run from Arrow's buffers: bytes and offsets, one pass, no object a row.

`buffers.py` is the same in plain Python, and tells what each function does. A property test holds the two equal.
"""

from array import array as new_array
from typing import NamedTuple

from cpython.array cimport array, clone
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize, PyByteArray_GET_SIZE
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from libc.string cimport memcpy, memset

from ..errors import LocalError
from ..payload import MAX_RUN_BYTES
from ..payload cimport Payload, PayloadRun
from .widths import ends_of

__all__ = ["ColumnBuffers", "RowBuffers", "Taken"]

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject* object)
    PyObject* PyList_GET_ITEM(list object, Py_ssize_t index)

cdef long long LONGEST = MAX_RUN_BYTES
# One batch is being filled, one is in the consumer's hands, and one is what its variable still holds.
cdef int LENT = 3
cdef array NO_ITEM = new_array("i")


class Taken(NamedTuple):
    """The buffers of two columns, as Arrow's binary type has them."""

    rows: int
    data: memoryview
    data_ends: memoryview
    metadata: memoryview
    metadata_ends: memoryview
    valid: memoryview
    nulls: int


cdef class Room:
    """Bytes that grow: there is room for `size`, and `used` of them are taken."""

    cdef bytearray _octets
    cdef unsigned char* start
    cdef Py_ssize_t size, used
    # What came together the last time: the next one is likely alike, and growing by steps costs copies.
    cdef Py_ssize_t _before
    # What was taken lately. Once nobody else has it, it is used again: fresh memory costs more than the copying.
    cdef list _lent

    def __cinit__(self):
        self._lent = []

    cdef unsigned char* reserve(self, Py_ssize_t more) except? NULL:
        """Make room for `more` bytes, and return where they go."""
        if self.used + more > self.size:
            self._grow(max(self.used + more, self._before + self._before // 4, 2 * self.size))
        return self.start + self.used

    cdef int _grow(self, Py_ssize_t size) except -1:
        cdef bytearray octets = self._returned(size)
        if octets is None:
            octets = PyByteArray_FromStringAndSize(NULL, size)
        if self.used:
            memcpy(PyByteArray_AS_STRING(octets), self.start, self.used)
        self._octets = octets
        self.start = <unsigned char*>PyByteArray_AS_STRING(octets)
        self.size = PyByteArray_GET_SIZE(octets)
        return 0

    cdef bytearray _returned(self, Py_ssize_t size):
        """Return bytes that were lent and that nobody has any more, if there are any of that size."""
        cdef Py_ssize_t index
        cdef PyObject* lent
        for index in range(len(self._lent)):
            lent = PyList_GET_ITEM(self._lent, index)
            if Py_REFCNT(lent) == 1 and PyByteArray_GET_SIZE(<object>lent) >= size:
                return self._lent.pop(index)
        return None

    cdef int zeros(self, Py_ssize_t count) except -1:
        """Append `count` zeros."""
        if count > 0:
            memset(self.reserve(count), 0, count)
            self.used += count
        return 0

    cdef object take(self):
        """Return what is taken, and begin anew."""
        self._before = self.used
        if self.used == 0:
            return memoryview(b"")
        taken = memoryview(self._octets)[: self.used]
        self._lent.append(self._octets)
        if len(self._lent) > LENT:
            del self._lent[0]
        self._octets = None
        self.start = NULL
        self.size = self.used = 0
        return taken


cdef class ColumnBuffers:
    """Collects rows of data and metadata."""

    cdef readonly Py_ssize_t size
    # `_width` is that of all rows so far, none of which has metadata; then only `_data` is held.
    cdef Py_ssize_t _rows, _nulls, _width
    # While no row has metadata, there is nothing in the last three.
    cdef Room _data, _data_ends, _metadata, _metadata_ends, _valid

    def __cinit__(self):
        self._data, self._data_ends = Room(), Room()
        self._metadata, self._metadata_ends, self._valid = Room(), Room(), Room()

    def __len__(self):
        return self._rows

    cpdef void append(self, PayloadRun run, Py_ssize_t start=0, stop=None) except *:
        """Add the items of `run` from index `start` to `stop`."""
        cdef Py_ssize_t last = len(run) if stop is None else stop
        cdef Py_ssize_t size = run.check(start, last)
        if start == last:
            return
        if run.width and (self._rows == 0 or run.width == self._width):
            self._append_width(PyBytes_AS_STRING(run.buffer) + run.first + start * run.width, last - start, run.width)
            return
        self._spell_out()
        # Checked: the offsets are there, and are 32-bit integers.
        cdef const int* items = (<array?>run.offsets).data.as_ints + 3 * start
        cdef Py_ssize_t index, metadata_size = 0, nulls = 0
        for index in range(last - start):
            if items[3 * index] < 0:
                nulls += 1
            else:
                metadata_size += items[3 * index + 1] - items[3 * index]
        self._reserve(last - start, nulls, size - metadata_size, metadata_size)
        self._copy_data(PyBytes_AS_STRING(run.buffer), items, last - start)
        if self._metadata_ends.used:
            self._copy_metadata(PyBytes_AS_STRING(run.buffer), items, last - start)
        self._rows += last - start

    cpdef void append_payload(self, Payload payload) except *:
        """Add one item."""
        cdef Py_ssize_t metadata_size = 0, data_size = len(payload.data)
        cdef int item[3]
        if self._width and payload.metadata is None and data_size == self._width:
            self._append_width(PyBytes_AS_STRING(payload.data), 1, data_size)
            return
        self._spell_out()
        if payload.metadata is not None:
            metadata_size = PyBytes_GET_SIZE(payload.metadata)
        self._reserve(1, payload.metadata is None, data_size, metadata_size)
        item[0] = -1 if payload.metadata is None else 0
        item[1] = 0
        item[2] = <int>data_size
        self._copy_data(PyBytes_AS_STRING(payload.data), item, 1)
        if self._metadata_ends.used:
            item[1] = <int>metadata_size
            self._copy_metadata(NULL if payload.metadata is None else PyBytes_AS_STRING(payload.metadata), item, 1)
        self._rows += 1

    cdef int _append_width(self, const char* p, Py_ssize_t count, Py_ssize_t width) except -1:
        """Add `count` rows of the width that all have, which lie one behind the other."""
        cdef Py_ssize_t size = count * width
        self._check_size(size)
        memcpy(self._data.reserve(size), p, size)
        self._data.used += size
        self.size += size
        self._rows += count
        self._width = width
        return 0

    cdef int _spell_out(self) except -1:
        """Write down of each row what was left out while all had one width."""
        cdef const unsigned char[::1] ends
        if self._width:
            ends = ends_of(self._width, self._rows)
            memcpy(self._data_ends.reserve(ends.shape[0]), &ends[0], ends.shape[0])
            self._data_ends.used = ends.shape[0]
            self._nulls = self._rows
            self._width = 0
        return 0

    cdef int _check_size(self, Py_ssize_t size) except -1:
        """Refuse what 32-bit offsets could not tell the end of."""
        if self.size + size > LONGEST:
            raise LocalError(f"a record batch holds at most {LONGEST} bytes; finish this one first")
        return 0

    cdef int _reserve(
        self, Py_ssize_t rows, Py_ssize_t nulls, Py_ssize_t data_size, Py_ssize_t metadata_size
    ) except -1:
        """Make room for `rows` more rows; refuse what 32-bit offsets could not tell the end of."""
        self._check_size(data_size + metadata_size)
        if self._rows == 0:
            self._data_ends.zeros(sizeof(int) - self._data_ends.used)
        self._data.reserve(data_size)
        self._data_ends.reserve(rows * sizeof(int))
        if nulls < rows or self._metadata_ends.used:
            self._begin_metadata()
            self._metadata.reserve(metadata_size)
            self._metadata_ends.reserve(rows * sizeof(int))
            self._valid.zeros(((self._rows + rows + 7) >> 3) - self._valid.used)
        self.size += data_size + metadata_size
        self._nulls += nulls
        return 0

    cdef int _begin_metadata(self) except -1:
        """Say of all rows so far that they have no metadata, unless more is known."""
        self._metadata_ends.zeros((self._rows + 1) * sizeof(int) - self._metadata_ends.used)
        self._valid.zeros(((self._rows + 7) >> 3) - self._valid.used)
        return 0

    cdef void _copy_data(self, const char* p, const int* item, Py_ssize_t count) noexcept:
        """Add the data of `count` rows that were checked, and for which `_reserve` has made room."""
        cdef unsigned char* data = self._data.start
        cdef int* ends = <int*>(self._data_ends.start + self._data_ends.used)
        cdef Py_ssize_t used = self._data.used, row, size
        for row in range(count):
            size = item[2] - item[1]
            memcpy(data + used, p + item[1], size)
            used += size
            ends[row] = <int>used
            item += 3
        self._data.used = used
        self._data_ends.used += count * sizeof(int)

    cdef void _copy_metadata(self, const char* p, const int* item, Py_ssize_t count) noexcept:
        """Add the metadata of these rows, as far as they have any."""
        cdef unsigned char* metadata = self._metadata.start
        cdef int* ends = <int*>(self._metadata_ends.start + self._metadata_ends.used)
        cdef Py_ssize_t used = self._metadata.used, row, size
        for row in range(count):
            if item[0] >= 0:
                size = item[1] - item[0]
                memcpy(metadata + used, p + item[0], size)
                used += size
                self._valid.start[(self._rows + row) >> 3] |= 1 << ((self._rows + row) & 7)
            ends[row] = <int>used
            item += 3
        self._metadata.used = used
        self._metadata_ends.used += count * sizeof(int)

    cpdef object take(self):
        """Return what was collected, and forget it."""
        cdef Py_ssize_t rows = self._rows
        if self._width:
            none = ends_of(0, rows)
            ends = ends_of(self._width, rows)
            taken = Taken(rows, self._data.take(), ends, memoryview(b""), none, none[: (rows + 7) >> 3], rows)
        else:
            if rows == 0:
                self._data_ends.zeros(sizeof(int) - self._data_ends.used)
            self._begin_metadata()
            taken = Taken(
                rows,
                self._data.take(),
                self._data_ends.take(),
                self._metadata.take(),
                self._metadata_ends.take(),
                self._valid.take(),
                self._nulls,
            )
        self.size = self._rows = self._nulls = self._width = 0
        return taken


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
        cdef long long size = 0
        cdef Py_ssize_t row
        if metadata == NULL:
            row = _fitting(data, start, last, most, each, &size)
        else:
            row = _fitting_both(data, metadata, start, last, most, each, &size)
        if row < 0:
            raise _damaged(data, metadata, -1 - row)
        if size > LONGEST:
            raise LocalError(f"a run holds at most {LONGEST} bytes; make several of these payloads")
        return _joined(start, row, size, data, metadata)


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


cdef Py_ssize_t _fitting(
    const Column* data, Py_ssize_t start, Py_ssize_t stop, long long most, Py_ssize_t each, long long* size
) noexcept:
    """Return the row behind the last one that fits, and set `size`; -1 - row for a row that lies outside its bytes."""
    cdef const int* ends = data.ends
    cdef int first = ends[start], begin = first, end
    cdef Py_ssize_t row
    if first < 0:
        return -1 - start
    for row in range(start, stop):
        end = ends[row + 1]
        if end < begin or end > data.size:
            return -1 - row
        if end - first + each * (row - start + 1) > most and row > start:
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
    long long most,
    Py_ssize_t each,
    long long* size,
) noexcept:
    """Do the same for rows that may have metadata."""
    cdef Py_ssize_t row, length, more
    for row in range(start, stop):
        length = _row_bytes(data, row)
        more = _row_bytes(metadata, row)
        if length < 0 or more < 0:
            return -1 - row
        if size[0] + length + more + each * (row - start + 1) > most and row > start:
            return row
        size[0] += length + more
    return stop


cdef object _damaged(const Column* data, const Column* metadata, Py_ssize_t row):
    """Return the error for a row that lies outside its bytes."""
    cdef const Column* column = data if metadata == NULL or _row_bytes(data, row) < 0 else metadata
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
    (<PayloadRun>run)._offsets = offsets
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
