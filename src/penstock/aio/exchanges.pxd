cimport cython

from ..events cimport Event, ItemReceived


cdef class Exchanges:
    cdef public object loop
    cdef public object session
    cdef public object settings
    cdef public object service
    cdef public bint paused
    cdef public dict calls
    cdef public dict inbound
    cdef public dict outbound
    cdef public set left
    cdef public list restored
    cdef public set tasks

    cpdef wake(self)
    cpdef write(self)
    cpdef reply(self, stream_id, payload)
    @cython.locals(event=Event)
    cpdef dispatch(self, list happened)
    cdef _item(self, ItemReceived event)
