/* geo.h - where an address is, by a database of the user in MaxMind's format (.mmdb). derived.c calls it.
 *
 *   country  country.iso_code, as DE          of a database of countries or cities
 *   city     city.names.en, as Munich         of a database of cities
 *   asn      autonomous_system_number, as AS64496, of a database of autonomous systems
 *
 * Library : libmaxminddb, loaded when a field needs it. The file is mapped: replace it by renaming another
 *           one, never by writing into it.
 * Threads : read-only once opened; shared.
 * Errors  : EX_NOINPUT: the file cannot be read; EX_DATAERR: it is no such database; EX_CONFIG: it is one of
 *           another kind; EX_OSFILE: libmaxminddb is not installed.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"

#include <stdint.h>

enum geo_value { GEO_COUNTRY, GEO_CITY, GEO_ASN };

struct geo;

struct geo *geo_open(const char *path, struct err *e) MUST_CHECK;
void geo_close(struct geo *g);
/* Can it have such values? By its type, as "GeoLite2-City". */
bool geo_has(const struct geo *g, enum geo_value value, struct err *e) MUST_CHECK;
/* "GeoLite2-City of 2026-11-03T10:11:12Z": its type, and when it was built. */
void geo_print(const struct geo *g, struct text *out);
/* When it was built, by its own word: seconds since 1970, at most CIVIL_END_MS. */
int64_t geo_built(const struct geo *g);
/* The value of a host, in the arena. ptr NULL: the host is no address, or the database does not know. */
struct slice geo_find(const struct geo *g, enum geo_value value, struct slice host, struct arena *memory);
