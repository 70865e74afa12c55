from .inbound cimport Inbound


cdef class Oversized(Inbound):
    pass
