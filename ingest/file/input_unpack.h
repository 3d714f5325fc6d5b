/* input_unpack.h - unpacks compressed bytes. input.c calls it.
 *
 * gzip             : by zlib. libarchive does not compare a member's checksum, and drops the bytes it has
 *                    unpacked when it meets damage.
 * zstd, bzip2, xz  : by libarchive, which checks them. If data is damaged, unpacked bytes of its block
 *                    (64 KiB; zstd: 128 KiB) are lost.
 * Growth           : behind the end, a file may grow by whole members or frames: read on. Zeros are padding.
 * Errors           : EX_DATAERR, returned after all bytes before it were delivered; or the source's own
 *                    error.
 */
#pragma once

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

enum packing { PACKING_NONE, PACKING_GZIP, PACKING_ZSTD, PACKING_BZIP2, PACKING_XZ, PACKING_COUNT };

/* Gets the next packed bytes, which stay valid until the next call; *len is 0 at the end. */
typedef bool input_unpack_source(void *context, const char **bytes, size_t *len, struct err *e);

struct input_unpack;

struct input_unpack *input_unpack_new(enum packing packing, input_unpack_source *source, void *context);
void input_unpack_free(struct input_unpack *u);
/* *got is 0 at the end. Errors do not name the file. */
bool input_unpack_read(struct input_unpack *u, void *buf, size_t cap, size_t *got, struct err *e) MUST_CHECK;

/* Detects the packing from the first `len` bytes of a file. *more: PACKING_NONE is not certain, more bytes
 * are needed. */
enum packing input_unpack_detect(const char *bytes, size_t len, bool *more);
/* Does a packed file say that it has so many bytes unpacked? Only gzip files of one member do. */
bool input_unpack_has_size(const char *path, int64_t size);
const char *input_unpack_name(enum packing packing);
