from .scanning cimport Bytes, Envelope, Span

cdef bint json_envelope(Bytes p, Py_ssize_t at, Py_ssize_t end, int levels, Envelope* found) noexcept nogil
cdef Span json_ok_payload(Bytes p, Span body) noexcept nogil
cpdef bint is_body(bytes data)
