cimport cython
from libc.stdint cimport int64_t

@cython.locals(p="const unsigned char*", high=int64_t)
cpdef int64_t u32(bytes data, Py_ssize_t at) except -1
