"""Whole frames, with their 24-bit length, straight into the bytes that travel: one allocation each.

`packing.py` is the same in plain Python, and tells what each function does. A property test holds the two equal.
"""

from cpython.array cimport array
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.string cimport memcpy

from ...errors import LocalError
from ...payload cimport PayloadRun

__all__ = ["pack", "pack_head", "pack_run"]

cdef enum:
    METADATA = 0x100
    PREFIX = 3
    HEADER = 6
    LONGEST = 0xFFFFFF
    GREATEST = 0x7FFFFFFF


cpdef bytes pack(long long stream_id, int kind, long long request_n, bytes metadata, bytes data):
    """Return a frame: header, `request_n` unless it is -1, metadata unless it is None, data."""
    cdef Py_ssize_t size = len(data)
    cdef bytes frame = _with_room(stream_id, kind, request_n, metadata, size, size)
    memcpy(PyBytes_AS_STRING(frame) + PyBytes_GET_SIZE(frame) - size, PyBytes_AS_STRING(data), size)
    return frame


cpdef bytes pack_head(long long stream_id, int kind, bytes metadata, Py_ssize_t data_bytes):
    """Return a frame up to its data, of which `data_bytes` bytes follow."""
    return _with_room(stream_id, kind, -1, metadata, data_bytes, 0)


cdef bytes _with_room(
    long long stream_id, int kind, long long request_n, bytes metadata, Py_ssize_t data_bytes, Py_ssize_t room
):
    """Return a frame that is written up to its data, with `room` bytes behind."""
    cdef Py_ssize_t size = -1 if metadata is None else PyBytes_GET_SIZE(metadata)
    cdef Py_ssize_t length = HEADER + data_bytes
    if request_n >= 0:
        length += 4
    if size >= 0:
        length += 3 + size
    _check(stream_id, request_n, data_bytes, length)
    cdef bytes frame = PyBytes_FromStringAndSize(NULL, PREFIX + length - data_bytes + room)
    cdef unsigned char* q = _head(<unsigned char*>PyBytes_AS_STRING(frame), length, stream_id, kind, request_n, size)
    if size > 0:
        memcpy(q, PyBytes_AS_STRING(metadata), size)
    return frame


cdef inline unsigned char* _head(
    unsigned char* q, Py_ssize_t length, long long stream_id, int kind, long long request_n, Py_ssize_t metadata_bytes
) noexcept nogil:
    """Write prefix, header, request-n and metadata length; return where they end."""
    kind = kind & ~METADATA if metadata_bytes < 0 else kind | METADATA
    q[0] = <unsigned char>(length >> 16)
    q[1] = <unsigned char>(length >> 8)
    q[2] = <unsigned char>length
    q[3] = <unsigned char>(stream_id >> 24)
    q[4] = <unsigned char>(stream_id >> 16)
    q[5] = <unsigned char>(stream_id >> 8)
    q[6] = <unsigned char>stream_id
    q[7] = <unsigned char>(kind >> 8)
    q[8] = <unsigned char>kind
    q += PREFIX + HEADER
    if request_n >= 0:
        q[0] = <unsigned char>(request_n >> 24)
        q[1] = <unsigned char>(request_n >> 16)
        q[2] = <unsigned char>(request_n >> 8)
        q[3] = <unsigned char>request_n
        q += 4
    if metadata_bytes >= 0:
        q[0] = <unsigned char>(metadata_bytes >> 16)
        q[1] = <unsigned char>(metadata_bytes >> 8)
        q[2] = <unsigned char>metadata_bytes
        q += 3
    return q


cdef int _check(long long stream_id, long long request_n, Py_ssize_t data_bytes, Py_ssize_t length) except -1:
    """Refuse what the fields cannot hold."""
    if not 0 <= stream_id <= GREATEST:
        raise LocalError(f"stream id {stream_id} does not fit 31 bits")
    if not -1 <= request_n <= GREATEST:
        raise LocalError(f"request-n {request_n} does not fit 31 bits")
    # The data by itself first: a length that nothing can have might overflow the sum.
    if not 0 <= data_bytes <= LONGEST or length > LONGEST:
        raise LocalError(f"a frame of {length} bytes is longer than its 24-bit length can say; fragment the payload")
    return 0


cpdef list pack_run(long long stream_id, int kind, PayloadRun run, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t most):
    """Return a frame for each item of `run` from index `start` to `stop`, glued into pieces."""
    cdef list pieces = []
    run.check(start, stop)
    if start == stop:
        return pieces
    # Checked: the offsets are there, and are 32-bit integers.
    cdef const int* offsets = (<array?>run.offsets).data.as_ints
    cdef Py_ssize_t first = start, at = start, size = 0, need
    _check(stream_id, -1, 0, 0)
    while at < stop:
        need = _frame_bytes(offsets, at)
        if need > PREFIX + LONGEST:
            _check(stream_id, -1, 0, need - PREFIX)
        if size + need > most and first < at:
            pieces.append(_piece(stream_id, kind, run.buffer, offsets, first, at, size))
            first = at
            size = 0
        size += need
        at += 1
    pieces.append(_piece(stream_id, kind, run.buffer, offsets, first, stop, size))
    return pieces


cdef inline Py_ssize_t _frame_bytes(const int* offsets, Py_ssize_t index) noexcept:
    """Return how long the frame of an item is with its prefix."""
    cdef int first = offsets[3 * index]
    if first < 0:
        return PREFIX + HEADER + offsets[3 * index + 2] - offsets[3 * index + 1]
    return PREFIX + HEADER + 3 + offsets[3 * index + 2] - first


cdef bytes _piece(
    long long stream_id, int kind, bytes buffer, const int* offsets, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t size
):
    """Return the frames of some items, `size` bytes as `_frame_bytes` counted them."""
    cdef bytes piece = PyBytes_FromStringAndSize(NULL, size)
    cdef unsigned char* q = <unsigned char*>PyBytes_AS_STRING(piece)
    cdef const char* p = PyBytes_AS_STRING(buffer)
    cdef Py_ssize_t index, metadata_bytes, data_bytes
    cdef int first
    # The GIL stays: nobody may change the offsets between the check and this.
    for index in range(start, stop):
        first = offsets[3 * index]
        data_bytes = offsets[3 * index + 2] - offsets[3 * index + 1]
        metadata_bytes = -1 if first < 0 else offsets[3 * index + 1] - first
        q = _head(
            q, HEADER + data_bytes + (0 if first < 0 else 3 + metadata_bytes), stream_id, kind, -1, metadata_bytes
        )
        if metadata_bytes > 0:
            memcpy(q, p + first, metadata_bytes)
            q += metadata_bytes
        memcpy(q, p + offsets[3 * index + 1], data_bytes)
        q += data_bytes
    return piece
