from ..account cimport Account
from ..transports.turns cimport Reader, Turns
from .scheduler cimport Lane

cdef int FLUSH_AFTER
cdef int SLOTS, TURN, UNREAD


cdef class Flow:
    cdef public object loop
    cdef public object session
    cdef public Account account
    cdef public object settings
    cdef public object connection
    cdef public str name
    cdef public object flush
    cdef public object link
    cdef public bint paused
    cdef public bint withheld
    cdef public bint batching
    cdef public dict senders
    cdef public Lane lane
    cdef public Turns turns
    cdef public Reader reader
    cdef public bint late
    cdef public list kept
    cdef bint _link_full
    cdef bint _storage_full
    cdef list _waiters
    cdef public Py_ssize_t unsent
    cdef public Py_ssize_t max_backlog
    cdef public Py_ssize_t part_bytes
    cdef public int holds
    cdef bint _backlogged
    cdef long long _taken_bytes
    cdef public object failed
    cdef public Py_ssize_t written
    cdef public Py_ssize_t look_after
    cdef object _look
    cdef double _pause

    cpdef schedule_write(self, Py_ssize_t size=*)
    cpdef write(self)
    cpdef stop_reading(self, int why)
    cpdef resume_reading(self, int why)
    cpdef wait_turn(self)
    cpdef bint may_go_on(self) except -1
    cpdef wrote(self, link)
    cpdef count_output(self)
    cdef bint _check_backlog(self, link) except -1
