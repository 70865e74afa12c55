from .asking cimport Asking


cdef class Peer(Asking):
    cdef object _driver
