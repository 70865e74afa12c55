cdef int _CALL, _FIRE, _STREAM, _UPLOAD


cpdef begin(driver, event)
cdef _begin_channel(driver, event, handler)
cdef _answer(driver, stream_id, result, handler)
cdef _payload(result)
cdef _reply(driver, stream_id, payload, handler)


cdef class TaskAnswer:
    cdef public object driver
    cdef public object handler
    cdef public bint over
    cdef public object stream_id
    cdef public object task
