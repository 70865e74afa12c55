cimport cython

from .flow cimport Flow


@cython.final
@cython.freelist(256)
cdef class Reply:
    cdef public bint _asyncio_future_blocking
    cdef readonly object _loop
    cdef Replies _replies
    cdef object _callback
    cdef object _context
    cdef bint _done
    cdef object _error
    cdef public object value

    cdef begin(self, Replies replies)
    cpdef bint done(self)
    cpdef set_result(self, value)
    cpdef set_exception(self, error)
    cdef _end(self)
    cdef wake(self)
    cdef _taken(self)


cdef class Replies:
    cdef readonly object loop
    cdef Flow _flow
    cdef list _ready

    @cython.locals(reply=Reply)
    cpdef Reply new(self)
    cpdef add(self, Reply reply)
    @cython.locals(ready=list, flow=Flow, reply=Reply)
    cpdef _wake(self)
