cpdef tuple request_of(route, data, metadata)


cdef class Asking:
    pass
