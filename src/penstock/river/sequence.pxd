import cython


@cython.final
cdef class Sequence:
    cdef Py_ssize_t _max_messages
    cdef Py_ssize_t _max_bytes
    cdef object _unacked
    cdef Py_ssize_t _kept
    cdef public long long seq
    cdef public long long ack
    cdef public Py_ssize_t octets
    cdef public Py_ssize_t room
    cdef public long long covered
    cdef public long long reserved
    cdef public long long private

    cpdef long long reported(self)
    cpdef bint over(self)
    cpdef bint has_reserve(self)
    cpdef void sent(self, bytes message) except *
    @cython.locals(count="long long", message=bytes)
    cpdef void acknowledged(self, long long ack) except *
    @cython.locals(room=Py_ssize_t)
    cdef void _measure(self) noexcept
