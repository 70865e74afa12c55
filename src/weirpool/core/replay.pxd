import cython

from ..account cimport Account

cdef Py_ssize_t ENTRY_BYTES
cdef Py_ssize_t ENTRY_FRAMES
cdef Py_ssize_t ENTRY_SIZE
cdef Py_ssize_t LEAST_ENTRIES


@cython.final
cdef class Replay:
    cdef Py_ssize_t _limit
    cdef Py_ssize_t _prefix_bytes
    cdef Py_ssize_t _entry_size
    cdef long long _begun
    cdef object _entries
    cdef list _newest
    cdef public Account account
    cdef public Py_ssize_t held
    cdef public long long first
    cdef public long long end

    cpdef keep(self, bytes piece, Py_ssize_t size, bint begins)
    cdef bint _fits(self, Py_ssize_t size) except -1
    cdef _join(self)
    @cython.locals(held=Py_ssize_t)
    cdef _count(self)
    @cython.locals(length=Py_ssize_t, offset=Py_ssize_t)
    cdef bytes _skip(self, bytes frames, Py_ssize_t size)
    cdef Py_ssize_t _length(self, bytes frames, Py_ssize_t offset) except -1
