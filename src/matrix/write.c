/* SPDX-License-Identifier: MIT
 * write.c - writes a matrix to a file; its name determines the format. */
#include "matrix/files.h"
#include <string.h>

bool tl_name_ends(const char *path, const char *with)
{
    size_t n = strlen(path), m = strlen(with);
    if (n <= m) return false;
    for (size_t i = 0; i < m; i++) {
        char c = path[n - m + i];
        if (c >= 'A' && c <= 'Z') c = (char)(c + 32);
        if (c != with[i]) return false;
    }
    return true;
}

tulle_status tl_write(tl_base *b, const char *path, const tulle_csr *A)
{
    tulle_status status = TULLE_OK;
    bool gz = tl_name_ends(path, ".mtx.gz"), text = gz || tl_name_ends(path, ".mtx");
    bool binary = tl_name_ends(path, ".tulle");
    if (!text && !binary) {
        status = tl_fail(b, TULLE_EINVAL, "%s: the name should end with .mtx, .mtx.gz or .tulle, which says"
                         " what to write", path);
        goto done;
    }
    if (binary) TRY(tl_binary_write(b, path, A));
    else TRY(tl_mtx_write(b, path, A, "general", gz));
done:
    return status;
}
