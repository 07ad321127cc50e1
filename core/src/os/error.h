/* The one place where errno becomes jzx_err. */
#ifndef JZI_OS_ERROR_H
#define JZI_OS_ERROR_H

#include <jzx/types.h>

/* What an errno value means to a user. Never JZX_OK: an unknown value is JZX_ERR_IO. A call whose
 * errno means something else than usual says so itself before it asks here. Thread: any. */
jzx_err jzi_err_from_errno(int code);

#endif
