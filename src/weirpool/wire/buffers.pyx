"""Arrow buffers from runs: bytes and offsets in one pass, without an object for each row.

`buffers.py` does the same in plain Python, and documents each function. A property test compares the two.
"""

from cpython.array cimport array
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize, PyByteArray_GET_SIZE
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from libc.string cimport memcpy, memset

from ..errors import LocalError
from ..payload import MAX_RUN_BYTES
from ..payload cimport Payload, PayloadRun
from .widths import BufferedRun, ends_of

__all__ = ["ColumnBuffers"]

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject* object)
    PyObject* PyList_GET_ITEM(list object, Py_ssize_t index)

cdef long long LONGEST = MAX_RUN_BYTES
# Where empty buffers are: copying no bytes to or from NULL would be undefined behavior.
cdef unsigned char[1] NOWHERE
# One batch is being filled, the consumer uses another, and its variable may still refer to the one before.
cdef int MAX_LENT = 3


cdef class GrowingBuffer:
    """A buffer of `size` bytes, of which `used` are in use. It grows as needed."""

    cdef bytearray _bytes
    cdef unsigned char* start
    cdef Py_ssize_t size, used
    # The final size of the previous buffer: the next one is probably similar, and growing in steps costs copies.
    cdef Py_ssize_t _before
    # Buffers taken recently. They are reused when nothing else refers to them: new memory costs more than copying.
    cdef list _lent

    def __cinit__(self):
        self._lent = []
        self.start = NOWHERE

    cdef unsigned char* reserve(self, Py_ssize_t more) except? NULL:
        """Allocate `more` bytes, and return their address."""
        if self.used + more > self.size:
            self._grow(max(self.used + more, self._before + self._before // 4, 2 * self.size))
        return self.start + self.used

    cdef int _grow(self, Py_ssize_t size) except -1:
        cdef bytearray data = self._reusable(size)
        if data is None:
            data = PyByteArray_FromStringAndSize(NULL, size)
        if self.used:
            memcpy(PyByteArray_AS_STRING(data), self.start, self.used)
        self._bytes = data
        self.start = <unsigned char*>PyByteArray_AS_STRING(data)
        self.size = PyByteArray_GET_SIZE(data)
        return 0

    cdef bytearray _reusable(self, Py_ssize_t size):
        """Return a buffer of that size that was taken and is unused now, if there is one."""
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
        """Return the bytes in use, and start with an empty buffer."""
        self._before = self.used
        if self.used == 0:
            return memoryview(b"")
        taken = memoryview(self._bytes)[: self.used]
        self._lent.append(self._bytes)
        if len(self._lent) > MAX_LENT:
            del self._lent[0]
        self._bytes = None
        self.start = NOWHERE
        self.size = self.used = 0
        return taken


cdef class ColumnBuffers:
    """Collects rows of data and metadata."""

    cdef readonly Py_ssize_t size
    # `_width` is the width of all rows so far, if it is the same and none has metadata; then only `_data` is used.
    cdef Py_ssize_t _rows, _nulls, _width
    # The last three are empty while no row has metadata.
    cdef GrowingBuffer _data, _data_ends, _metadata, _metadata_ends, _valid

    def __cinit__(self):
        self._data, self._data_ends = GrowingBuffer(), GrowingBuffer()
        self._metadata, self._metadata_ends, self._valid = GrowingBuffer(), GrowingBuffer(), GrowingBuffer()

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
        self._expand()
        # `check` has ensured that these offsets exist and are 32-bit integers.
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
        self._expand()
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
        """Add `count` consecutive rows of the width that all rows have."""
        cdef Py_ssize_t size = count * width
        self._check_size(size)
        memcpy(self._data.reserve(size), p, size)
        self._data.used += size
        self.size += size
        self._rows += count
        self._width = width
        return 0

    cdef int _expand(self) except -1:
        """Store the offsets of all rows, which are not stored while all have one width."""
        cdef const unsigned char[::1] ends
        if self._width:
            ends = ends_of(self._width, self._rows)
            memcpy(self._data_ends.reserve(ends.shape[0]), &ends[0], ends.shape[0])
            self._data_ends.used = ends.shape[0]
            self._nulls = self._rows
            self._width = 0
        return 0

    cdef int _check_size(self, Py_ssize_t size) except -1:
        """Raise LocalError if `size` more bytes exceed 32-bit offsets."""
        if self.size + size > LONGEST:
            raise LocalError(f"a record batch holds at most {LONGEST} bytes; finish this one first")
        return 0

    cdef int _reserve(
        self, Py_ssize_t rows, Py_ssize_t nulls, Py_ssize_t data_size, Py_ssize_t metadata_size
    ) except -1:
        """Allocate memory for `rows` more rows. Raises LocalError if they exceed 32-bit offsets."""
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
        """Mark all rows so far as rows without metadata, if they are not marked yet."""
        self._metadata_ends.zeros((self._rows + 1) * sizeof(int) - self._metadata_ends.used)
        self._valid.zeros(((self._rows + 7) >> 3) - self._valid.used)
        return 0

    cdef void _copy_data(self, const char* p, const int* item, Py_ssize_t count) noexcept:
        """Add the data of `count` checked rows, for which `_reserve` has allocated memory."""
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
        """Add the metadata of these rows, if they have any."""
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
        """Remove and return the collected rows."""
        cdef Py_ssize_t rows = self._rows
        if self._width:
            zeros = ends_of(0, rows)
            ends = ends_of(self._width, rows)
            taken = BufferedRun(rows, self._data.take(), ends, memoryview(b""), zeros, zeros[: (rows + 7) >> 3], rows)
        else:
            if rows == 0:
                self._data_ends.zeros(sizeof(int) - self._data_ends.used)
            self._begin_metadata()
            taken = BufferedRun(
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
