cimport cython

cdef long long GREATEST_31


@cython.final
cdef class Deframer:
    cdef public Py_ssize_t max_frame_bytes
    cdef readonly Py_ssize_t prefix
    cdef readonly Py_ssize_t min_frame_bytes
    # Codec.scan_run reads these, and moves `start` and `end` to the last frame of a run.
    cdef readonly bytes buffer
    cdef readonly Py_ssize_t size
    cdef readonly Py_ssize_t start
    cdef readonly Py_ssize_t end
    cdef readonly object oversized
    cdef object _pieces
    cdef Py_ssize_t _first
    cdef Py_ssize_t _own
    cdef Py_ssize_t _waiting
    cdef Py_ssize_t _left
    cdef bint _passes

    cpdef object feed(self, bytes data)

    @cython.locals(have=Py_ssize_t, need=Py_ssize_t, length=Py_ssize_t)
    cpdef bint next(self) except -1

    @cython.locals(step=Py_ssize_t)
    cdef bint _skip(self) except -1

    # Only next() calls these two. It has checked that the prefix, or `need` bytes, are available.
    @cython.locals(p="const unsigned char*", at=Py_ssize_t, length="long long")
    cdef Py_ssize_t _body_bytes(self) except -1

    @cython.locals(have=Py_ssize_t, stop=Py_ssize_t)
    cdef void _refill(self, Py_ssize_t need) except *
