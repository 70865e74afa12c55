cdef class Router:
    cdef object _mime
    cdef Py_ssize_t _limit
    cdef Py_ssize_t _bare_bytes
    cdef dict _encoded
    cdef dict _decoded

    cpdef bytes metadata(self, str route, bytes metadata)
    cpdef str route(self, bytes metadata)
