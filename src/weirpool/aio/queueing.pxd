from .flow cimport Flow


cdef class CallLimit:
    cdef Py_ssize_t _cap
    cdef Py_ssize_t _sent
    cdef public Py_ssize_t value


cdef class QueuedRequest:
    cdef public object future
    cdef public tuple opening
    cdef public object own
    cdef public object order
    cdef public double since
    cdef public bint is_call
    cdef public bint needs_place
    cdef public object stream_id


cdef class RequestQueue:
    cdef Flow _flow
    cdef dict _calls
    cdef public CallLimit limit
    cdef public bint busy
    cdef public bint unleased
    cdef public object on_wait
    cdef object _waiting
    cdef list _refused
    cdef bint _closed
    cdef bint _scheduled
    cdef object _timer
    cdef Py_ssize_t _fruitless
    cdef bint _refusal
    cdef bint _too_early
    cdef double _interval
    cdef double _due
