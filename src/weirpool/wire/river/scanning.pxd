from .message cimport Message

cpdef Message scan(bytes buffer, Py_ssize_t start, Py_ssize_t end, bint json, bint results, str from_=*, str to=*)
cpdef bint is_body(bytes data, bint json)
