import cython


cdef list ENDS, STARTS
cdef int COMPLETE, FAIL, OPEN, DONE


# `id` is an integer, so a stream takes no part in garbage collection.
@cython.final
@cython.no_gc
@cython.freelist(256)
cdef class Stream:
    cdef public object id
    cdef public int kind
    cdef public bint ours
    cdef public int inbound
    cdef public int outbound
    cdef public Py_ssize_t granted
    cdef public Py_ssize_t credit
    cdef public Py_ssize_t unrequested
    cdef public bint half_close

    @cython.locals(requester=int, responder=int)
    cpdef begin(self, id, int kind, bint ours, bint half_close)
    @cython.locals(ends=int, ours=int, theirs=int, by_requester=bint)
    cpdef bint end(self, int signal, bint from_us)


cdef class StreamTable:
    cdef dict _streams
    cdef Py_ssize_t _first_id
    cdef bint _own_ids
    cdef bint _half_close
    cdef public Py_ssize_t next_id
    cdef public Py_ssize_t remote
    cdef public bint wrapped

    cpdef Stream get(self, stream_id)
    @cython.locals(stream=Stream)
    cpdef Stream open_ours(self, kind)
    @cython.locals(free=Py_ssize_t)
    cpdef take_id(self)
    @cython.locals(stream=Stream)
    cpdef Stream open_theirs(self, stream_id, kind)
    @cython.locals(number=Py_ssize_t)
    cpdef bint may_be_theirs(self, stream_id)
    cpdef follow(self, Py_ssize_t stream_id)
    cpdef void close(self, Stream stream)
    cdef Py_ssize_t _after(self, Py_ssize_t stream_id)
