from .flow cimport Flow
from .queueing cimport RequestQueue
from .slots cimport Slots


cdef class Exchanges:
    cdef public Flow flow
    cdef public object session
    cdef public object new_reply
    cdef public dict calls
    cdef public dict inbound
    cdef public dict outbound
    cdef public set abandoned
    cdef public list restored
    cdef public set fires
    cdef readonly Slots slots
    cdef public list unread
    cdef Py_ssize_t _unread_before
    cdef public set tasks
    cdef public RequestQueue queue

    cpdef request(self, stream_id, count)
    cpdef bint end_inbound(self, stream_id, error) except -1
    cpdef bint end_outbound(self, stream_id, metadata=*) except -1
