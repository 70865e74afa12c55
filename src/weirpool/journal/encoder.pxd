cimport cython

cdef int ALIGNMENT
cdef int _METADATA_V5, _RECORD_BATCH, _COLUMNS, _BUFFERS

cpdef object rows_in(object items)

@cython.locals(rows=Py_ssize_t, size=Py_ssize_t, whole=Py_ssize_t, pieces=list, table=list, header=bytearray)
cpdef object encode(object items, str stream, object note)

@cython.locals(filling=Py_ssize_t, header=bytearray)
cdef bytearray _header(Py_ssize_t rows, tuple nulls, Py_ssize_t size, list table, bytes note)

@cython.locals(start=Py_ssize_t)
cdef str _seal(object header, str body)

@cython.locals(size=Py_ssize_t, length=Py_ssize_t, rest=Py_ssize_t, pieces=list, table=list)
cdef tuple _laid_out(tuple buffers)

cdef tuple _columns(object items)

@cython.locals(rows=Py_ssize_t)
cdef tuple _binary(object column)

@cython.locals(view="long long[::1]", row=Py_ssize_t)
cdef object _positions(long long first, Py_ssize_t rows)

cdef tuple _repeated(bytes text, Py_ssize_t rows)
