cdef class Lifecycle:
    cdef public int state
    cdef public bytes token
    cdef public bytes identity
    cdef public bint established
    cdef public long long received
    cdef public long long reported

    cpdef long long position(self)
