cdef class Peer:
    cdef object _driver
