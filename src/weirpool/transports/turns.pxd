import cython


cdef double MOST_SECONDS, LEAST_SECONDS, TASK_SECONDS, SMALL_SECONDS, NEVER
cdef int SMALL_BYTES, UNMEASURED


cdef class Turns


cdef class Client:
    cdef object __weakref__
    cdef public double used
    cdef public double latest
    cdef public double now
    cdef public list waiting
    cdef public bint listed


@cython.final
cdef class Reader:
    cdef public Client client
    cdef public object step
    cdef public double used
    cdef public bint waits
    cdef public bint decodes
    cdef public double began
    cdef public double charged


cdef class Turns:
    cdef object __weakref__
    cdef object _clients
    cdef object _loop
    cdef object _order
    cdef public object clock
    cdef public double now
    cdef public double latest
    cdef public list waiting
    cdef public Client serving
    cdef public double spent
    cdef public double until
    cdef public double owed
    cdef public double charged
    cdef public int depth
    cdef public int small
    cdef public double ended
    cdef public bint scheduled

    cpdef Client client(self, str name)
    @cython.locals(began=double, client=Client)
    cpdef bint enter(self, Reader reader, Py_ssize_t size) except -1
    cpdef bint over(self) except -1
    cpdef task_started(self)
    @cython.locals(now=double, taken=double, used=bint, client=Client)
    cpdef bint leave(self, Reader reader) except -1
    cpdef wait(self, Reader reader)
    @cython.locals(client=Client)
    cdef _queue(self, Reader reader)
    cdef _list(self, Client client)
    @cython.locals(client=Client)
    cdef _begin(self, Reader reader, double now)
    @cython.locals(now=double)
    cpdef _turn(self)
    cdef _schedule(self)
    cpdef _next_iteration(self)
    @cython.locals(client=Client, reader=Reader, more=bint)
    cdef _go_on(self, double now)
