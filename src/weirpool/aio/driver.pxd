cimport cython

from ..account cimport Account
from .alarm cimport Alarm
from .dispatch cimport Dispatch
from .exchanges cimport Exchanges
from .flow cimport Flow
from .late_requests cimport LateRequests


cdef int BACKLOG, FULL, SLOTS, TURN, UNREAD, DECODING, SLICE


cdef class Driver:
    cdef object __weakref__
    cdef public object loop
    cdef public object session
    cdef public object settings
    cdef public object connection
    cdef public Flow flow
    cdef public Exchanges exchanges
    cdef public Dispatch dispatch
    cdef public object budget
    cdef public object sink
    cdef public object admission
    cdef public object taps
    cdef public int state
    cdef public object error
    cdef public object over
    cdef public object on_change
    cdef object _unlinked
    cdef bint _more
    cdef bint _lost
    cdef public object _durable
    cdef list _setup_waiters
    cdef Alarm _alarm

    @cython.locals(flow=Flow)
    cpdef received(self, bytes data)
    @cython.locals(flow=Flow, account=Account, late=LateRequests, more=bint)
    cdef _decode(self, bytes data)
    @cython.locals(happened=list)
    cdef _pass_on(self)
    @cython.locals(flow=Flow)
    cpdef flush(self)
    @cython.locals(flow=Flow, account=Account)
    cdef _limit_reading(self)
