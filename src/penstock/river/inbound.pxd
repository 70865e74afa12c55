import cython

from ..events cimport Canceled, Completed, Event, Failed, ItemReceived, Requested
from ..payload cimport Payload
from ..wire.river.message cimport Message
from .rehandshake cimport Rehandshakes
from .streams cimport RiverStream

cdef int CANCEL, CLOSE, OPENS, DONE, OPEN, ITEM_BYTES
cdef str GOODBYE, REHANDSHAKE


cdef class Inbound(Rehandshakes):
    cdef _stream_message(self, Message message)
    @cython.locals(stream=RiverStream, flags=int, done=bint, body=bytes)
    cdef _response(self, Message message)
    cdef bytes _result(self, RiverStream stream, Message message)
    @cython.locals(stream=RiverStream, flags=int, name=str, done=bint)
    cdef _request(self, Message message)
    cdef _unknown(self, Message message, int flags)
    @cython.locals(name=str, service=str, procedure=str, stream=RiverStream, done=bint, sends_items=bint, route=str)
    cdef _open_theirs(self, Message message, int flags)
    @cython.locals(size=Py_ssize_t)
    cdef _item(self, RiverStream stream, ItemReceived event)
    cdef _deliver(self, RiverStream stream, Event event)
    @cython.locals(size=Py_ssize_t)
    cdef _release(self, RiverStream stream)
    cdef _settle(self, RiverStream stream)
    @cython.locals(body=bytes)
    cdef bint _is_close(self, Message message) except -1
