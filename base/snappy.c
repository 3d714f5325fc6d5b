#include "base/snappy.h"

#include "base/library.h"
#include "base/mem.h"

#include <snappy-c.h>
#include <sysexits.h>

/* clang-format off */
#define FUNCTIONS(X) \
    X(snappy_compress) X(snappy_max_compressed_length) X(snappy_uncompress) X(snappy_uncompressed_length)
/* clang-format on */

static struct {
    FUNCTIONS(LIBRARY_FUNCTION)
} lib;

static const struct library_symbol symbols[] = {FUNCTIONS(LIBRARY_SYMBOL)};
static struct library libsnappy = {"libsnappy.so.1", "libsnappy1v5", symbols, COUNT_OF(symbols), false};

/* Room for `bytes`, and for the NUL of a text. */
static struct text text_with_room(size_t bytes)
{
    return (struct text){.ptr = xmalloc(bytes + 1), .capacity = bytes + 1};
}

static void set_length(struct text *t, size_t len)
{
    t->len = len;
    t->ptr[len] = '\0';
}

bool snappy_load(struct err *e)
{
    return library_load(&libsnappy, e);
}

bool snappy_claims(struct slice packed, size_t *len)
{
    return lib.snappy_uncompressed_length(packed.ptr, packed.len, len) == SNAPPY_OK;
}

bool snappy_unpack_to(struct slice packed, char *out, size_t len)
{
    size_t room = len;
    return lib.snappy_uncompress(packed.ptr, packed.len, out, &room) == SNAPPY_OK && room == len;
}

bool snappy_unpack(struct slice packed, size_t max, struct text *out, struct err *e)
{
    size_t len;
    if (!snappy_load(e))
        return false;
    if (!snappy_claims(packed, &len))
        return err_set(e, EX_PROTOCOL, "the body is no Snappy block");
    if (len > max)
        return err_set(e, EX_PROTOCOL, "the body claims %zu bytes unpacked, more than %zu", len, max);
    struct text unpacked = text_with_room(len);
    bool good = snappy_unpack_to(packed, unpacked.ptr, len);
    if (good)
        text_add(out, unpacked.ptr, len);
    text_fini(&unpacked);
    return good || err_set(e, EX_PROTOCOL, "the body is a damaged Snappy block");
}

bool snappy_pack(struct text *t, struct err *e)
{
    if (!snappy_load(e))
        return false;
    size_t len = lib.snappy_max_compressed_length(t->len);
    struct text packed = text_with_room(len);
    snappy_status status = lib.snappy_compress(t->ptr, t->len, packed.ptr, &len);
    ASSERT(status == SNAPPY_OK); /* there was room */
    set_length(&packed, len);
    text_fini(t);
    *t = packed;
    return true;
}
