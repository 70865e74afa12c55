cdef class Outbox:
    cdef list _pieces
    cdef public Py_ssize_t size
    cdef public bint taken

    cpdef void write(self, bytes piece)
    cpdef void clear(self)
