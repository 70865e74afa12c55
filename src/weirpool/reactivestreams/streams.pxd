import cython
from libc.stdint cimport int64_t

cdef int64_t _MAX
cdef int _COMPLETE, _ERROR

cpdef int64_t add(int64_t demand, int64_t count)
cpdef int64_t spend(int64_t demand, int64_t count)


cdef class Subscription:
    cdef readonly object id
    cdef readonly object number
    cdef readonly int kind
    cdef public int64_t granted
    cdef public bint confirmed
    cdef public bint over
    cdef public object element_size
    cdef public bytes metadata
    cdef readonly dict elements


cdef class Subscriptions:
    cdef dict _table
    cdef dict _by_id
    cdef object _last_id
    cdef list _free
    cdef set _canceled
    cdef object _next
    cdef readonly Py_ssize_t live

    cpdef Subscription get(self, number)
    cpdef Subscription of(self, stream_id)
    @cython.locals(subscription=Subscription)
    cpdef Subscription receiving(self, number, int type)
    cpdef end(self, Subscription subscription, bint canceled=*)
    cdef _remove(self, number)


cdef class Publication:
    cdef readonly object subscriber
    cdef readonly object id
    cdef public int64_t credit
    cdef readonly Py_ssize_t element_size
    cdef public object unsent
    cdef public object unsent_id
    cdef public object next_element
