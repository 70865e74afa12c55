cimport cython

from ..events cimport Canceled as CanceledByPeer
from ..events cimport Event, Failed, ItemReceived, Requested, RunReceived
from ..payload cimport Payload
from ..transports.turns cimport Turns
from .exchanges cimport Exchanges
from .flow cimport Flow
from .late_requests cimport LateRequests
from .replies cimport Reply
from .sizes cimport size_of
from .slots cimport Slots


cdef int _CALL, _FIRE, _STREAM, _UPLOAD
cdef int CHECK_EVERY
cdef double TURN_SECONDS


cdef class Dispatch:
    cdef public Flow flow
    cdef public Exchanges exchanges
    cdef public object service
    cdef dict _calls
    cdef dict _fires
    cdef public object context
    cdef object _on_session_event
    cdef object _pushes
    cdef Turns _turns
    cdef readonly LateRequests late

    @cython.locals(event=Event, late=LateRequests, ended=set, begun=double, now=double, count=Py_ssize_t,
                   check=Py_ssize_t, place=Py_ssize_t, waits=bint)
    cpdef take(self, list happened)
    cpdef serve(self, service)
    cdef _handle(self, Event event)
    cdef _run(self, RunReceived event)
    @cython.locals(exchanges=Exchanges, reply=Reply)
    cdef _item(self, ItemReceived event)
    cdef _end(self, event)
    @cython.locals(kind=int)
    cdef _begin(self, Requested event)
    cdef _find(self, int kind, str route)
    cdef _begin_channel(self, Requested event, handler, context)
    cdef _hold(self, Requested event, handler)
    cdef _answer(self, Requested event, result, handler, context)


@cython.locals(ended=set, event=Event)
cdef set _ended_after(list happened, Py_ssize_t place)
cdef _payload(result)
cdef Py_ssize_t _memory_of(Payload request, handler) except -1
@cython.locals(kind=int)
cdef _reply(Exchanges exchanges, stream_id, Payload payload, handler)


cdef class TaskAnswer:
    cdef public Py_ssize_t held
    cdef public Exchanges exchanges
    cdef public object handler
    cdef public bint over
    cdef public object stream_id
    cdef public object task
    cdef public object work
