from ..core.streams cimport StreamTable
from ..payload cimport Payload
from .inbound cimport Inbound
from .lease cimport Leases
from .lifecycle cimport Lifecycle
from .outbound cimport Outbound
from .strays cimport Strays

import cython

cdef int DRAINING


@cython.final
cdef class Control:
    cdef object _settings
    cdef object _dialect
    cdef Payload _setup
    cdef Lifecycle _life
    cdef list _events
    cdef object _timers
    cdef StreamTable _streams
    cdef Outbound _outbound
    cdef Inbound _inbound
    cdef Strays _strays
    cdef Leases _leases
    cdef object _sessions
    cdef object _session
    cdef readonly object keepalive
    cdef readonly object greeting
    cdef public object handshake

    cpdef establish(self)
