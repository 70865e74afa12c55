from .exchanges cimport Exchanges


cdef class Flow(Exchanges):
    cdef public str name
    cdef public object link
    cdef public bint closed
    cdef public object gate
    cdef public object kept
    cdef bint _choked
    cdef bint _crowded
    cdef list _waiters
    cdef Py_ssize_t _unsent
    cdef int _holds
    cdef Py_ssize_t _fires
    cdef bint _waited
    cdef long long _taken

    cpdef flush(self)
    cpdef write(self)
    cdef bint _bears(self, link) except -1
