cdef class Alarm:
    cdef object _loop
    cdef object _ring
    cdef object _timer
    cdef public double due

    cpdef set(self, double due)
    cpdef stop(self)
