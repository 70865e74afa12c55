from .message cimport Bytes, Envelope, Span

cdef bint msgpack_envelope(Bytes p, Py_ssize_t at, Py_ssize_t end, int levels, Envelope* found) noexcept nogil
cdef Span msgpack_ok_payload(Bytes p, Span body) noexcept nogil
cdef bint is_msgpack_body(bytes data)
