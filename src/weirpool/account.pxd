import cython

cdef Py_ssize_t SLACK


cdef class Group


@cython.final
cdef class Account:
    cdef public Py_ssize_t limit
    cdef public Account parent
    cdef public Py_ssize_t held
    cdef public Py_ssize_t incomplete
    cdef public Py_ssize_t of_link
    cdef public Py_ssize_t unread
    cdef public Py_ssize_t waiting
    cdef public Py_ssize_t retained
    cdef public double unlinked_since
    cdef public Py_ssize_t largest
    cdef public Group group
    cdef public Py_ssize_t settled
    cdef public Py_ssize_t settled_incomplete
    cdef public bint paused
    cdef public bint indebted
    cdef public object on_room
    cdef public object on_debt

    @cython.locals(connection=Account)
    cpdef book(self, Py_ssize_t size)
    @cython.locals(connection=Account)
    cpdef release(self, Py_ssize_t size)
    cpdef close(self)
    cpdef book_incomplete(self, Py_ssize_t size)
    cpdef book_retained(self, Py_ssize_t size)
    cpdef book_waiting(self, Py_ssize_t size)
    cpdef book_link(self, Py_ssize_t size)
    cpdef book_unread(self, Py_ssize_t size)
    cpdef lose_link(self, double now=*)
    cpdef Py_ssize_t room(self)
    @cython.locals(largest=Py_ssize_t, room=Py_ssize_t, most=Py_ssize_t, connection=Account)
    cpdef Py_ssize_t grantable(self, Py_ssize_t count, Py_ssize_t expected) except -1
    @cython.locals(level=int)
    cpdef int settle(self) except -1
    @cython.locals(group=Group)
    cpdef released(self)


@cython.final
cdef class Group:
    cdef public Group parent
    cdef public Py_ssize_t held
    cdef public Py_ssize_t incomplete
    cdef public Py_ssize_t peak
    cdef public Py_ssize_t limit
    cdef public Py_ssize_t incomplete_limit
    cdef public set members
    cdef object _limits
    cdef object _incomplete_limits
    cdef set _waiting
    cdef Account _payer

    @cython.locals(process=Group)
    cpdef int settle(self, Account connection) except -1
    cpdef bint is_over(self) except -1
    @cython.locals(change=Py_ssize_t, part=Py_ssize_t)
    cpdef count(self, Account connection)
    cpdef add(self, Py_ssize_t change, Py_ssize_t part)
    cpdef wait(self, Account connection)
    cpdef charge(self)
