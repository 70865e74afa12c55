from .message cimport Bytes, Envelope, Span

cdef bint json_envelope(Bytes p, Py_ssize_t at, Py_ssize_t end, int levels, Envelope* found) noexcept nogil
cdef Span json_ok_payload(Bytes p, Span body) noexcept nogil
cdef bint is_json_body(bytes data)
