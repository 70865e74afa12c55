from ..core.streams cimport StreamTable
from ..account cimport Account
from .lease cimport Leases
from .outbound cimport Outbound


cdef class Lifecycle:
    cdef readonly object settings
    cdef readonly Account account
    cdef readonly object dialect
    cdef readonly bint is_client
    cdef readonly object finish
    cdef readonly list events
    cdef readonly object timers
    cdef readonly StreamTable streams
    cdef readonly Outbound outbound
    cdef readonly Leases leases
    cdef public int state
    cdef public bytes token
    cdef public bint established
    cdef public long long received
    cdef public long long reported

    cpdef long long position(self)
