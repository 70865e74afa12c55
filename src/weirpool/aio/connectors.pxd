from .driver cimport Driver


cdef class Connector:
    cdef public Driver current
    cdef public Driver latest
    cdef public object settings


cdef class Direct(Connector):
    pass
