cimport cython

from ..payload cimport Payload, PayloadRun
from .exchanges cimport Exchanges
from .flow cimport Flow


cdef class ReceiveBuffer:
    cdef public Exchanges exchanges
    cdef Flow flow
    cdef public object stream_id
    cdef public Py_ssize_t window
    cdef public Py_ssize_t least
    cdef public Py_ssize_t most
    cdef public Py_ssize_t octets
    cdef public double asked
    cdef public Py_ssize_t threshold
    cdef public Py_ssize_t owed
    cdef public object cut
    cdef public Py_ssize_t cut_count
    cdef public Py_ssize_t at
    cdef public list pending
    cdef public object on_push
    cdef public Py_ssize_t pushed
    cdef public object builder
    cdef public Py_ssize_t max_rows
    cdef public Py_ssize_t max_bytes
    cdef public bint over
    cdef public object error
    cdef public object waiter

    cpdef item(self, Payload payload)
    @cython.locals(count=Py_ssize_t)
    cpdef run(self, PayloadRun run)
    cdef bint has_room(self, builder, Py_ssize_t count) except *
    cpdef wake(self)
    cpdef consumed(self, Py_ssize_t count)
    @cython.locals(count=Py_ssize_t)
    cpdef top_up(self)
    @cython.locals(now=double, quick=bint, limit=Py_ssize_t, before=Py_ssize_t)
    cdef Py_ssize_t _change(self) except? -1
    @cython.locals(count=Py_ssize_t, room=Py_ssize_t, taken=Py_ssize_t, start=Py_ssize_t, stop=Py_ssize_t, items=list)
    cpdef bint cut_more(self) except *
    @cython.locals(items=list, used=Py_ssize_t)
    cdef _uncut(self)
