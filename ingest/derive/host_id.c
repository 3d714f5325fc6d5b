#include "ingest/derive/host_id.h"

#include "base/check.h"
#include "base/civil.h"
#include "base/library.h"

#include <glib.h>

#define DAY_BYTES   10 /* of the text of a day */
#define FINGERPRINT "fingerprint of derive.key"

#define FUNCTIONS(X) X(g_hmac_new) X(g_hmac_update) X(g_hmac_get_string) X(g_hmac_unref)
LIBRARY(glib, FUNCTIONS, "libglib-2.0.so.0", "libglib2.0-0");

bool host_id_open(struct err *e)
{
    return library_load(&glib, e);
}

/* The first digits of the HMAC of two texts, one behind the other. */
static void hash(struct slice key, struct slice one, struct slice two, char out[HOST_ID_BYTES])
{
    ASSERT(glib.loaded);
    GHmac *hmac = lib.g_hmac_new(G_CHECKSUM_SHA256, (const guchar *)key.ptr, key.len);
    lib.g_hmac_update(hmac, (const guchar *)one.ptr, (gssize)one.len);
    lib.g_hmac_update(hmac, (const guchar *)two.ptr, (gssize)two.len);
    memcpy(out, lib.g_hmac_get_string(hmac), HOST_ID_BYTES);
    lib.g_hmac_unref(hmac);
}

void host_id_fingerprint(struct slice key, char out[HOST_ID_BYTES])
{
    hash(key, slice_text(FINGERPRINT), slice_of("", 0), out);
}

void host_id(struct slice key, int64_t day, struct slice host, char out[HOST_ID_BYTES])
{
    char date[CIVIL_ISO_BYTES];
    civil_iso(day * DAY_MS, date);
    date[DAY_BYTES] = ' ';
    hash(key, slice_of(date, DAY_BYTES + 1), host, out);
}
