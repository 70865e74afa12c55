cimport cython

from ..account cimport Account
from ..payload cimport Payload, PayloadRun
from .exchanges cimport Exchanges
from .flow cimport Flow
from .sizes cimport size_of


cdef Py_ssize_t PINNED_BYTES, PINNED_RATIO


cdef class ReceiveBuffer:
    cdef object __weakref__
    cdef public Exchanges exchanges
    cdef Flow flow
    cdef public Account account
    cdef public object stream_id
    cdef public Py_ssize_t window
    cdef public Py_ssize_t min_window
    cdef public Py_ssize_t max_window
    cdef public Py_ssize_t received_bytes
    cdef public double requested_at
    cdef public Py_ssize_t threshold
    cdef public Py_ssize_t consumed
    cdef public Py_ssize_t expected
    cdef public Py_ssize_t deferred
    cdef public Py_ssize_t allowed
    cdef public Py_ssize_t requested
    cdef public bint began
    cdef list _items
    cdef public object ready
    cdef public Py_ssize_t ready_count
    cdef public Py_ssize_t ready_bytes
    cdef public Py_ssize_t offset
    cdef public list pending
    cdef public object on_push
    cdef public Py_ssize_t pushed
    cdef public object builder
    cdef public Py_ssize_t max_rows
    cdef public Py_ssize_t max_bytes
    cdef public bint over
    cdef public bint refused
    cdef public object error
    cdef public list waiters

    @cython.locals(size=Py_ssize_t)
    cpdef item(self, Payload payload)
    @cython.locals(count=Py_ssize_t, size=Py_ssize_t)
    cpdef run(self, PayloadRun run)
    cdef bint has_room(self, builder, Py_ssize_t count) except *
    cpdef wake_consumers(self)
    cpdef consume(self, Py_ssize_t count)
    cpdef allow(self, Py_ssize_t total)
    @cython.locals(count=Py_ssize_t)
    cpdef request_more(self)
    @cython.locals(granted=Py_ssize_t)
    cdef _request(self, Py_ssize_t count)
    @cython.locals(now=double, quick=bint, limit=Py_ssize_t, before=Py_ssize_t)
    cdef Py_ssize_t _resize_window(self) except? -1
    @cython.locals(count=Py_ssize_t, room=Py_ssize_t, taken=Py_ssize_t, start=Py_ssize_t, stop=Py_ssize_t, items=list)
    cpdef bint prepare(self) except *
    @cython.locals(size=Py_ssize_t)
    cdef _release_ready(self)
    @cython.locals(items=list, used=Py_ssize_t)
    cpdef put_back(self, PayloadRun run=*)
