cimport cython
from libc.stdint cimport int64_t

from ...payload cimport PayloadRun, fixed_run
from .codec cimport Items, Message

cdef int _GOODBYE, _ON_NEXT, _PACKED, _SUBSCRIBED
cdef int _SUBSCRIBER, _NUMBER, _TEXT, _ELEMENT, _IDS
cdef int _MAX_BITS


@cython.final
cdef class Decoder:
    cdef public int64_t max_string_bytes
    cdef public int64_t max_element_bytes
    cdef public int64_t max_metadata_bytes
    cdef public int64_t max_extensions
    cdef public int first
    cdef public dict extensions
    cdef public dict element_sizes
    cdef readonly bytes buffer
    cdef readonly Py_ssize_t size
    cdef readonly Py_ssize_t start
    cdef readonly Py_ssize_t incomplete
    cdef bint _runs
    cdef Py_ssize_t _pos
    cdef bytearray _tail
    cdef Py_ssize_t _need
    cdef object _base
    cdef bytes _ahead
    cdef Py_ssize_t _ahead_at
    cdef int64_t _left
    cdef object _owner
    cdef Py_ssize_t _width

    cpdef feed(self, bytes data)
    cpdef next(self)

    @cython.locals(data=bytes, at=Py_ssize_t, available=Py_ssize_t, lacking=Py_ssize_t, end=Py_ssize_t)
    cdef bint _refill(self) except -1
    cdef _save_tail(self)
    cdef _drop(self)

    @cython.locals(p="const unsigned char*", at=Py_ssize_t, end=Py_ssize_t, value=int64_t, byte=int64_t, shift=int)
    cdef int64_t _varint(self, str what) except? -2
    @cython.locals(length=int64_t)
    cdef int64_t _length(self, int64_t limit, str what) except? -2
    cdef int64_t _element_length(self, bint first) except? -2
    @cython.locals(end=Py_ssize_t, data=bytes)
    cdef bytes _take(self, Py_ssize_t length)
    @cython.locals(count=int64_t, each=int64_t, left=int64_t)
    cdef tuple _ids(self, str what)

    @cython.locals(type=int64_t, message=Message)
    cdef _message(self)
    @cython.locals(length=int64_t, data=bytes)
    cdef bint _field(self, Message message, str name, int kind) except -1
    cdef int64_t _limit(self, int type, int kind) except -1
    @cython.locals(size=int64_t, limit=int64_t)
    cdef _set_element_size(self, Message message)

    @cython.locals(
        buffer=bytes, subscriber=int64_t, head=bytes, fixed=int64_t, length=int64_t, middle=Py_ssize_t, end=Py_ssize_t,
        carried=Py_ssize_t, taken=Py_ssize_t, at=Py_ssize_t, view="int[::1]", limit=Py_ssize_t, head_bytes=Py_ssize_t,
    )
    cdef _elements(self)
    @cython.locals(subscriber=int64_t, count=int64_t, size=int64_t, limit=int64_t, data=bytes, items=Items)
    cdef _packed(self)
    @cython.locals(width=Py_ssize_t, at=Py_ssize_t, count=int64_t)
    cdef Items _packed_elements(self)


@cython.locals(run=PayloadRun)
cdef PayloadRun _run(bytes buffer, offsets, Py_ssize_t size)
