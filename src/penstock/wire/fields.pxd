cimport cython

cpdef unsigned int u16(const unsigned char* p, Py_ssize_t at) noexcept

cpdef unsigned int u24(const unsigned char* p, Py_ssize_t at) noexcept

@cython.locals(high="unsigned int")
cpdef unsigned int u32(const unsigned char* p, Py_ssize_t at) noexcept
