from libc.stdint cimport int64_t

ctypedef const unsigned char* Bytes

cdef Py_ssize_t after_msgpack(Bytes p, Py_ssize_t at, Py_ssize_t end, int64_t* inner) noexcept nogil
cdef Py_ssize_t after_cbor(Bytes p, Py_ssize_t at, Py_ssize_t end, int64_t* inner) noexcept nogil
