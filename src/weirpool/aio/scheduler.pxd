cimport cython


cdef class Scheduler:
    cdef object __weakref__
    cdef public object clock
    cdef public object fresh
    cdef public object waiting
    cdef public bint running
    cdef public bint scheduled
    cdef public double begun
    cdef public double spent
    cdef public double until
    cdef public Py_ssize_t turns
    cdef public Py_ssize_t woken
    cdef public Py_ssize_t wakes
    cdef public double woken_at

    cpdef bint idle(self) except -1
    @cython.locals(seconds=double)
    cpdef at_once(self, Lane lane, half)
    cpdef schedule(self, Lane lane)
    cdef _schedule_after_input(self, Lane lane)
    @cython.locals(now=double, seconds=double, lane=Lane)
    cpdef turn(self, Lane first)
    cdef Lane _next(self)
    cpdef woke(self)
    cdef _adapt_wakes(self, double seconds)


cdef class Lane:
    cdef public Scheduler scheduler
    cdef public object flow
    cdef public object context
    cdef public object fresh
    cdef public object waiting
    cdef public Py_ssize_t deficit
    cdef public bint listed
    cdef public bint first
    cdef public Py_ssize_t visits

    cpdef ready(self, half, bint new=*)
    cpdef queue(self, half, bint new=*)
    cpdef remove(self, half)
    cpdef Py_ssize_t woke(self, half) except -1
    cpdef wait_for(self, half, Py_ssize_t turn)
    cpdef resume(self)
    cdef _list(self)
    cpdef bint blocked(self) except -1
    @cython.locals(then=double, scheduler=Scheduler)
    cpdef double visit(self, double now) except? -1
    cdef interrupted(self)
    cdef _next(self)
