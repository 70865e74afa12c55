cimport cython


@cython.final
cdef class Writer:
    cdef object _field
    cdef object _route_fields
    cdef bint _is_json
    cdef bytes _before
    cdef bytes _after
    cdef bytes _from_to
    cdef str _tag
    cdef bytes _tag_bytes
    cdef long long _made
    cdef tuple _fixed
    # Bytes of all that is the same in every message.
    cdef Py_ssize_t _same_bytes

    cpdef str new_id(self)
    cpdef bytes name(self, str own)
    cpdef bytes message(
        self, long long seq, long long ack, bytes name, int flags, bytes body, bint wrap_ok=*, str route=*,
        dict tracing=*,
    )
