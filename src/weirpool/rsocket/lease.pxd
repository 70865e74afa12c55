cdef class Leases:
    cdef object _timers
    cdef public object requester
    cdef public object responder
