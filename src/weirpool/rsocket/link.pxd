import cython

from ..core.unfinished cimport Unfinished
from ..payload cimport PayloadRun
from ..wire.rsocket.codec cimport Codec
from ..wire.framing cimport Deframer
from ..wire.rsocket.frames cimport Frame
from .control cimport Control
from .inbound cimport Inbound
from .lifecycle cimport Lifecycle
from .outbound cimport Outbound
from .strays cimport Strays

cdef int _FIRST_COUNTED, _LAST_COUNTED
cdef int NEW, DRAINING, CLOSED
cdef int DOWN, HANDSHAKING, UP
cdef Py_ssize_t RUN_ITEMS, ITEMS_OF_FRAME


@cython.final
cdef class Link:
    cdef object _settings
    cdef Lifecycle _life
    cdef object _timers
    cdef Codec _codec
    cdef Outbound _outbound
    cdef Inbound _inbound
    cdef Strays _strays
    cdef Control _control
    cdef object _keepalive
    cdef object _losses
    cdef Deframer _deframer
    cdef long long _repeated
    cdef readonly int state
    cdef readonly Unfinished unfinished

    @cython.locals(left=Py_ssize_t, more=bint)
    cpdef bint receive(self, bytes data, double now, Py_ssize_t frames=*) except -1
    cdef _after(self)
    @cython.locals(
        deframer=Deframer, codec=Codec, buffer=bytes, start=Py_ssize_t, life=Lifecycle, run=PayloadRun, frame=Frame
    )
    cdef Py_ssize_t _receive_frame(self, double now) except -1
    cdef bint _handshake_frame(self, Frame frame, double now) except -1
    cdef bint _is_repeated(self, long long size) except -1
