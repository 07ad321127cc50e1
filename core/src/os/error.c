#include "os/error.h"

#include <errno.h>

jzx_err jzi_err_from_errno(int code)
{
    switch (code) {
    case EAGAIN:
    case EINPROGRESS:
    case EALREADY:
        return JZX_ERR_AGAIN;
    case ENOMEM:
    case ENOBUFS:
        return JZX_ERR_NO_MEMORY;
    case EMFILE:
    case ENFILE:
        return JZX_ERR_NO_FDS;
    case EBADF:
    case ENOTSOCK:
        return JZX_ERR_BAD_FD;
    case EACCES:
    case EPERM:
    case EROFS:
        return JZX_ERR_NO_ACCESS;
    case ENOENT:
    case ENOTDIR:
    case ESRCH:
    case ECHILD:
        return JZX_ERR_NOT_FOUND;
    case EINVAL:
    case EFAULT:
        return JZX_ERR_INVALID_ARG;
    case ENAMETOOLONG:
    case EAFNOSUPPORT:
    case EADDRNOTAVAIL:
    case ELOOP:
        return JZX_ERR_BAD_ADDRESS;
    case EADDRINUSE:
        return JZX_ERR_ADDRESS_IN_USE;
    case ECONNREFUSED:
        return JZX_ERR_CONN_REFUSED;
    /* Which of the three a writer sees depends on how far the peer's reset has come. */
    case ECONNRESET:
    case ECONNABORTED:
    case EPIPE:
        return JZX_ERR_CONN_RESET;
    case ENOTCONN:
    case ESHUTDOWN:
        return JZX_ERR_CLOSED;
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EHOSTDOWN:
    case ENETDOWN:
        return JZX_ERR_UNREACHABLE;
    case ETIMEDOUT:
    case ETIME:
        return JZX_ERR_TIMED_OUT;
    case ENOSYS:
    case EOPNOTSUPP:
    case EPROTONOSUPPORT:
        return JZX_ERR_NOT_SUPPORTED;
    case EMSGSIZE:
    case E2BIG:
    case EFBIG:
    case EOVERFLOW:
        return JZX_ERR_TOO_BIG;
    case EBUSY:
        return JZX_ERR_BUSY;
    case EEXIST:
    case EISCONN:
        return JZX_ERR_ALREADY;
    default:
        return JZX_ERR_IO;
    }
}
