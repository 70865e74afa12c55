"""The hot path of the codec: encodes frames with one allocation each, and reads runs in one pass.

`packing.py` does the same in plain Python, and documents each function. A property test compares the two.
"""

from array import array as new_array

from cpython.array cimport array, clone, resize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from ...errors import LocalError
from ...payload cimport PayloadRun
from ..framing cimport Deframer

__all__ = ["pack", "pack_head", "pack_run", "take_run"]

cdef enum:
    PAYLOAD = 0x0A
    METADATA = 0x100
    FOLLOWS = 0x80
    COMPLETE = 0x40
    NEXT = 0x20
    PREFIX = 3
    HEADER = 6
    LONGEST = 0xFFFFFF
    GREATEST = 0x7FFFFFFF

cdef array NO_ITEM = new_array("i")


cpdef bytes pack(long long stream_id, int kind, long long request_n, bytes metadata, bytes data, int own):
    """Return a frame: header, `request_n` unless it is -1, metadata unless it is None, data."""
    cdef Py_ssize_t size = len(data)
    cdef bytes frame = _allocated(stream_id, kind, request_n, metadata, size, size, own)
    memcpy(PyBytes_AS_STRING(frame) + PyBytes_GET_SIZE(frame) - size, PyBytes_AS_STRING(data), size)
    return frame


cpdef bytes pack_head(long long stream_id, int kind, bytes metadata, Py_ssize_t data_bytes, int own):
    """Return a frame without its data, of which `data_bytes` bytes follow."""
    return _allocated(stream_id, kind, -1, metadata, data_bytes, 0, own)


cdef bytes _allocated(
    long long stream_id, int kind, long long request_n, bytes metadata, Py_ssize_t data_bytes, Py_ssize_t spare,
    int own,
):
    """Return a frame without its data, followed by `spare` uninitialized bytes."""
    cdef Py_ssize_t size = -1 if metadata is None else PyBytes_GET_SIZE(metadata)
    cdef Py_ssize_t length = HEADER + data_bytes
    if request_n >= 0:
        length += 4
    if size >= 0:
        length += 3 + size
    _check(stream_id, request_n, data_bytes, length + own)
    cdef bytes frame = PyBytes_FromStringAndSize(NULL, PREFIX + length - data_bytes + spare)
    cdef unsigned char* q = <unsigned char*>PyBytes_AS_STRING(frame)
    q = _head(q, length + own, stream_id, kind, request_n, size)
    if size > 0:
        memcpy(q, PyBytes_AS_STRING(metadata), size)
    return frame


cdef inline unsigned char* _head(
    unsigned char* q, Py_ssize_t length, long long stream_id, int kind, long long request_n, Py_ssize_t metadata_bytes
) noexcept nogil:
    """Write prefix, header, request-n and metadata length; return the address after them."""
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
    """Raise LocalError for a value that is out of range."""
    if not 0 <= stream_id <= GREATEST:
        raise LocalError(f"stream id {stream_id} does not fit into 31 bits")
    if not -1 <= request_n <= GREATEST:
        raise LocalError(f"request-n {request_n} does not fit into 31 bits")
    # Check the data separately, because an impossible size might overflow the sum.
    if not 0 <= data_bytes <= LONGEST or length > LONGEST:
        raise LocalError(f"a frame of {length} bytes is too long for a 24-bit length; fragment the payload")
    return 0


cpdef list pack_run(
    long long stream_id, int kind, PayloadRun run, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t limit, int own
):
    """Return a frame for each item of `run` from index `start` to `stop`, joined into pieces."""
    cdef list pieces = []
    run.check(start, stop)
    if start == stop:
        return pieces
    # `check` has ensured that these offsets exist and are 32-bit integers.
    cdef const int* offsets = (<array?>run.offsets).data.as_ints
    cdef Py_ssize_t first = start, at = start, size = 0, need
    _check(stream_id, -1, 0, 0)
    while at < stop:
        need = _frame_bytes(offsets, at)
        if need + own > PREFIX + LONGEST:
            _check(stream_id, -1, 0, need + own - PREFIX)
        if size + need > limit and first < at:
            pieces.append(_piece(stream_id, kind, run.buffer, offsets, first, at, size, own))
            first = at
            size = 0
        size += need
        at += 1
    pieces.append(_piece(stream_id, kind, run.buffer, offsets, first, stop, size, own))
    return pieces


cdef inline Py_ssize_t _frame_bytes(const int* offsets, Py_ssize_t index) noexcept:
    """Return the size of an item's frame, including the prefix."""
    cdef int first = offsets[3 * index]
    if first < 0:
        return PREFIX + HEADER + offsets[3 * index + 2] - offsets[3 * index + 1]
    return PREFIX + HEADER + 3 + offsets[3 * index + 2] - first


cdef bytes _piece(
    long long stream_id, int kind, bytes buffer, const int* offsets, Py_ssize_t start, Py_ssize_t stop,
    Py_ssize_t size, int own,
):
    """Return the frames of consecutive items, whose total size is `size`."""
    cdef bytes piece = PyBytes_FromStringAndSize(NULL, size)
    cdef unsigned char* q = <unsigned char*>PyBytes_AS_STRING(piece)
    cdef const char* p = PyBytes_AS_STRING(buffer)
    cdef Py_ssize_t index, metadata_bytes, data_bytes, length
    cdef int first
    # Keep the GIL, so that no other thread can change the offsets after the check.
    for index in range(start, stop):
        first = offsets[3 * index]
        data_bytes = offsets[3 * index + 2] - offsets[3 * index + 1]
        metadata_bytes = -1 if first < 0 else offsets[3 * index + 1] - first
        length = HEADER + data_bytes + own + (0 if first < 0 else 3 + metadata_bytes)
        q = _head(q, length, stream_id, kind, -1, metadata_bytes)
        if metadata_bytes > 0:
            memcpy(q, p + first, metadata_bytes)
            q += metadata_bytes
        memcpy(q, p + offsets[3 * index + 1], data_bytes)
        q += data_bytes
    return piece


cpdef PayloadRun take_run(Deframer deframer, int64_t stream_id, Py_ssize_t limit):
    """Read at most `limit` items of a stream from the deframer; None if there are fewer than two."""
    cdef array offsets = clone(NO_ITEM, 3 * limit, False)
    cdef int* item = offsets.data.as_ints
    cdef const int* last = item + 3 * limit
    cdef const unsigned char* p = <const unsigned char*>PyBytes_AS_STRING(deframer.buffer)
    cdef Py_ssize_t size = deframer.size, max_frame_bytes = deframer.max_frame_bytes
    cdef Py_ssize_t at = deframer.start, end = deframer.end, taken_start = at, taken_end = end
    cdef Py_ssize_t first, middle, length, carried = 0
    while item < last:
        # The header is complete: the caller has checked the first frame, and the end of this loop checks the others.
        if (<unsigned int>p[at] << 24 | p[at + 1] << 16 | p[at + 2] << 8 | p[at + 3]) != stream_id:
            break
        middle = _item_data(p, at, end)
        if middle < 0:
            break
        first = at + HEADER + 3 if p[at + 4] & 1 else -1
        item[0] = <int>first
        item[1] = <int>middle
        item[2] = <int>end
        item += 3
        carried += end - (middle if first < 0 else first)
        taken_start = at
        taken_end = end
        if size - end < 3 + HEADER:
            break
        length = p[end] << 16 | p[end + 1] << 8 | p[end + 2]
        if length < HEADER or length > max_frame_bytes or length > size - end - 3:
            break
        at = end + 3
        end = at + length
    cdef Py_ssize_t count = item - offsets.data.as_ints
    if count < 6:
        return None
    deframer.start = taken_start
    deframer.end = taken_end
    resize(offsets, count)
    run = PayloadRun.__new__(PayloadRun)
    (<PayloadRun>run).buffer = deframer.buffer
    (<PayloadRun>run)._offsets = offsets
    (<PayloadRun>run).size = carried
    (<PayloadRun>run).sound = True
    return run


cdef inline Py_ssize_t _item_data(const unsigned char* p, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
    """Return the start of the data if ``p[at:end]``, at least a header, is the body of a complete item; else -1."""
    cdef unsigned int word = p[at + 4] << 8 | p[at + 5]
    if word >> 10 != PAYLOAD or word & (NEXT | COMPLETE | FOLLOWS) != NEXT:
        return -1
    cdef Py_ssize_t middle = at + HEADER
    if word & METADATA:
        if end - middle < 3:
            return -1
        middle += 3 + (p[middle] << 16 | p[middle + 1] << 8 | p[middle + 2])
        # `decode` reports metadata that runs past the frame.
        if middle > end:
            return -1
    return middle
