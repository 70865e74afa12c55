"""The reading half of an asyncio protocol: reads into bytes, and passes them to the receiver.

`reading.py` is the same in plain Python.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.memoryview cimport PyMemoryView_FromMemory

from ..errors import LocalError

__all__ = ["READ_BYTES", "ReadBuffer", "Reading"]

READ_BYTES = 131_072

cdef extern from "Python.h":
    int PyBUF_WRITE

cdef Py_ssize_t SIZE = READ_BYTES


cdef class ReadBuffer:
    """The buffer of reads: a bytes object that has no other reference until `take` returns it."""

    cdef bytes _data
    cdef object _view

    cpdef object view(self):
        """Return a buffer of `READ_BYTES` to read into. It is valid until `take`."""
        if self._data is None:
            self._data = PyBytes_FromStringAndSize(NULL, SIZE)
            self._view = PyMemoryView_FromMemory(PyBytes_AS_STRING(self._data), SIZE, PyBUF_WRITE)
        return self._view

    cpdef bytes take(self, Py_ssize_t count):
        """Return the first `count` bytes."""
        cdef bytes data = self._data
        if data is None or not 0 <= count <= SIZE:
            raise LocalError(f"{count} bytes were taken of a read buffer of {0 if data is None else SIZE}")
        if count < SIZE:
            return PyBytes_FromStringAndSize(PyBytes_AS_STRING(data), count)
        # A full buffer is returned without a copy, and the next read gets a new one.
        self._data = None
        self._view = None
        return data


cdef class Reading:
    """The methods of :class:`asyncio.BufferedProtocol` that asyncio calls for each read."""

    cdef public object receiver
    cdef ReadBuffer _buffer

    def __init__(self, receiver, ReadBuffer buffer not None):
        self.receiver = receiver
        self._buffer = buffer

    def get_buffer(self, sizehint):
        """Return the buffer to read into."""
        return self._buffer.view()

    def buffer_updated(self, Py_ssize_t nbytes):
        """Pass the bytes to the receiver."""
        self.receiver.received(self._buffer.take(nbytes))
