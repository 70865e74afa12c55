cimport cython

from ..payload cimport Payload, PayloadRun
from .exchanges cimport Exchanges
from .flow cimport Flow
from .scheduler cimport Lane

# Without types, they would be objects, and so would all sums with them.
cdef Py_ssize_t FRAME_BYTES, LOOK_ITEMS, QUANTUM
cdef double SLOW_SECONDS


cdef class Half:
    cdef public Py_ssize_t offset
    cdef public Py_ssize_t credit
    cdef public object context
    cdef public Exchanges exchanges
    cdef Flow flow
    cdef public Lane lane
    cdef object session
    cdef public object many
    cdef public Py_ssize_t given
    cdef public Py_ssize_t held
    cdef public Py_ssize_t items
    cdef public Py_ssize_t look
    cdef public double begun
    cdef public Py_ssize_t quantum
    cdef public Py_ssize_t part_bytes
    cdef public Py_ssize_t fragment_bytes
    cdef public str name
    cdef public bint over
    cdef public object put
    cdef public Py_ssize_t burst_left
    cdef public object source
    cdef public object stream_id

    @cython.locals(payload=Payload)
    cpdef send(self, item)
    @cython.locals(count=Py_ssize_t, sent=Py_ssize_t, stop=Py_ssize_t, run=PayloadRun)
    cpdef send_many(self)
    cdef bint begin_turn(self)
    cdef limit_burst(self)
