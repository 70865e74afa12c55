"""Runs in a buffer: one pass over the headers.

`scanning.py` is the same in plain Python, and tells what each function does. A property test holds the two equal.
"""

from array import array as new_array

from cpython.array cimport array, clone, resize
from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport int64_t

from ...payload cimport PayloadRun
from ..framing cimport Deframer

__all__ = ["scan"]

cdef enum:
    HEADER = 6
    PAYLOAD = 0x0A
    COMPLETE = 0x40
    FOLLOWS = 0x80
    METADATA = 0x100
    NEXT = 0x20

cdef array NO_ITEM = new_array("i")


cpdef PayloadRun scan(Deframer deframer, int64_t stream_id, Py_ssize_t room):
    """Take at most `room` items of a stream from the deframer, or none if there are not two."""
    cdef array offsets = clone(NO_ITEM, 3 * room, False)
    cdef int* item = offsets.data.as_ints
    cdef const int* last = item + 3 * room
    cdef const unsigned char* p = <const unsigned char*>PyBytes_AS_STRING(deframer.buffer)
    cdef Py_ssize_t size = deframer.size, most = deframer.max_frame_bytes
    cdef Py_ssize_t at = deframer.start, end = deframer.end, taken_start = at, taken_end = end
    cdef Py_ssize_t first, middle, length, carried = 0
    while item < last:
        # All of a header is there: of the first frame the caller has seen to it, of the others the end of this loop.
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
        if length < HEADER or length > most or length > size - end - 3:
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
    """Return where the data of a whole item starts whose body, at least a header, is ``p[at:end]``; else -1."""
    cdef unsigned int word = p[at + 4] << 8 | p[at + 5]
    if word >> 10 != PAYLOAD or word & (NEXT | COMPLETE | FOLLOWS) != NEXT:
        return -1
    cdef Py_ssize_t middle = at + HEADER
    if word & METADATA:
        if end - middle < 3:
            return -1
        middle += 3 + (p[middle] << 16 | p[middle + 1] << 8 | p[middle + 2])
        # Metadata that runs past the frame is for `decode` to judge.
        if middle > end:
            return -1
    return middle
