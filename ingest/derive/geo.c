#include "ingest/derive/geo.h"

#include "base/check.h"
#include "base/civil.h"
#include "base/library.h"
#include "base/mem.h"
#include "ingest/derive/host_net.h"

#include <errno.h>
#include <inttypes.h>
#include <maxminddb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

#define ASN_BYTES 16

#define FUNCTIONS(X) \
    X(MMDB_open)     \
    X(MMDB_close) X(MMDB_lookup_sockaddr) X(MMDB_aget_value) X(MMDB_strerror)
LIBRARY(libmaxminddb, FUNCTIONS, "libmaxminddb.so.0", "libmaxminddb0");

struct geo {
    MMDB_s db;
};

static const struct {
    const char *path[4];
    const char *kind;      /* of databases that have it */
    const char *others[3]; /* in types of databases that do not have it */
} values[] = {
    [GEO_COUNTRY] = {{"country", "iso_code", NULL}, "countries or cities", {"ASN", NULL}},
    [GEO_CITY] = {{"city", "names", "en", NULL}, "cities", {"ASN", "Country", NULL}},
    [GEO_ASN] = {{"autonomous_system_number", NULL}, "autonomous systems", {"City", "Country", NULL}}};

struct geo *geo_open(const char *path, struct err *e)
{
    if (!library_load(&libmaxminddb, e))
        return NULL;
    struct geo *g = xcalloc(1, sizeof *g);
    int status = lib.MMDB_open(path, MMDB_MODE_MMAP, &g->db);
    if (status == MMDB_SUCCESS)
        return g;
    const char *why = status == MMDB_IO_ERROR || status == MMDB_FILE_OPEN_ERROR ? strerror(errno)
                                                                                : lib.MMDB_strerror(status);
    err_set(e, status == MMDB_FILE_OPEN_ERROR ? EX_NOINPUT : EX_DATAERR,
            "cannot read the database %s: %s: expected an .mmdb file, such as GeoLite2-City.mmdb", path, why);
    free(g);
    return NULL;
}

void geo_close(struct geo *g)
{
    if (g == NULL)
        return;
    lib.MMDB_close(&g->db);
    free(g);
}

bool geo_has(const struct geo *g, enum geo_value value, struct err *e)
{
    const char *type = g->db.metadata.database_type;
    for (size_t i = 0; values[value].others[i] != NULL; i++) {
        if (strstr(type, values[value].others[i]) != NULL)
            return err_set(e, EX_CONFIG, "found a database of type %s, expected one of %s", type,
                           values[value].kind);
    }
    return true;
}

int64_t geo_built(const struct geo *g)
{
    uint64_t built = g->db.metadata.build_epoch, last = (CIVIL_END_MS - 1) / SECOND_MS;
    return (int64_t)(built < last ? built : last);
}

void geo_print(const struct geo *g, struct text *out)
{
    char at[CIVIL_ISO_BYTES];
    text_printf(out, "%s of %s", g->db.metadata.database_type, civil_iso(geo_built(g) * SECOND_MS, at));
}

static bool look_up(const struct geo *g, struct slice host, MMDB_lookup_result_s *found)
{
    unsigned char address[HOST_ADDRESS_BYTES];
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } at = {0};
    int error = MMDB_SUCCESS;
    enum host_family family = host_address(host, address);
    if (family == HOST_NO_ADDRESS)
        return false;
    at.any.sa_family = family == HOST_V4 ? AF_INET : AF_INET6;
    if (family == HOST_V4)
        memcpy(&at.v4.sin_addr, address, sizeof at.v4.sin_addr);
    else
        memcpy(&at.v6.sin6_addr, address, sizeof at.v6.sin6_addr);
    *found = lib.MMDB_lookup_sockaddr(&g->db, &at.any, &error);
    return error == MMDB_SUCCESS && found->found_entry;
}

struct slice geo_find(const struct geo *g, enum geo_value value, struct slice host, struct arena *memory)
{
    static const struct slice none = {NULL, 0};
    MMDB_lookup_result_s found;
    MMDB_entry_data_s data;
    if (!look_up(g, host, &found) ||
        lib.MMDB_aget_value(&found.entry, &data, values[value].path) != MMDB_SUCCESS || !data.has_data)
        return none;
    if (data.type == MMDB_DATA_TYPE_UTF8_STRING && value != GEO_ASN && data.data_size > 0)
        return arena_copy(memory, slice_of(data.utf8_string, data.data_size));
    if (data.type != MMDB_DATA_TYPE_UINT32 || value != GEO_ASN)
        return none;
    char *out = arena_add(memory, ASN_BYTES);
    return slice_of(out, (size_t)snprintf(out, ASN_BYTES, "AS%" PRIu32, data.uint32));
}
