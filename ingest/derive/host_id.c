#include "ingest/derive/host_id.h"

#include "base/check.h"
#include "base/civil.h"
#include "base/library.h"

#include <glib.h>

#define DAY_BYTES 10 /* of the text of a day */

#define FUNCTIONS(X) X(g_hmac_new) X(g_hmac_update) X(g_hmac_get_string) X(g_hmac_unref)
LIBRARY(glib, FUNCTIONS, "libglib-2.0.so.0", "libglib2.0-0");

bool host_id_open(struct err *e)
{
    return library_load(&glib, e);
}

void host_id(struct slice key, int64_t day, struct slice host, char out[HOST_ID_BYTES])
{
    char date[CIVIL_ISO_BYTES];
    ASSERT(glib.loaded);
    civil_iso(day * DAY_MS, date);
    date[DAY_BYTES] = ' ';
    GHmac *hmac = lib.g_hmac_new(G_CHECKSUM_SHA256, (const guchar *)key.ptr, key.len);
    lib.g_hmac_update(hmac, (const guchar *)date, DAY_BYTES + 1);
    lib.g_hmac_update(hmac, (const guchar *)host.ptr, (gssize)host.len);
    memcpy(out, lib.g_hmac_get_string(hmac), HOST_ID_BYTES);
    lib.g_hmac_unref(hmac);
}
