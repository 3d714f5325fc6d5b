/* derive.h - the fields that are made of other fields: which of them a configuration asks for, and by which
 * settings they are made. The configuration fills it; each chain makes its fields (derived.h).
 *
 *   query:NAME    the parameter NAME of the target's query, percent-decoded
 *   hour_of_day   00 to 23, day_of_week: monday to sunday, of the event's time in `timezone`
 *   host_net      the network of the host's address: 192.0.2.0/24 or 2001:db8:1::/48
 *   host_id       a pseudonym of the host for a day (host_id.h)
 *   agent_family, agent_os, bot   what the user agent says of itself (agents.h); bot is yes or no
 *   country, city, asn   where the host's address is (geo.h)
 *   route         the path with its identifiers replaced: /user/:id (route.h)
 *
 * Names   : they are names of own fields. An event that has such a field by itself keeps it: a member of
 *           JSON, a tag, a column. If a source says where the field comes from, nothing is made for it.
 * Asked   : only fields that a report or a raw list uses are made. Others cost nothing.
 * Hidden  : with `anonymise`, `host` is the network of host_net. No other text of an event and no rejected
 *           line has an address then (hide.h). Fields of the host are made before, all others after.
 * Given   : counts depend on the settings. A report's definition has those of its fields, so other settings
 *           are another generation; of the key a fingerprint (host_id.h).
 * Absent  : a field is absent if the field that it is made of is absent, or says nothing.
 * Owner   : derive_fini() frees. A struct of zeros asks for nothing.
 * Data    : derive_reload() reads lists and databases anew. A chain goes on with those that it holds until it
 *           is given others (derived.h). Settings do not reload.
 * Threads : read-only once opened, but for the data; shared by all. One thread reloads.
 */
#pragma once

#include "base/err.h"
#include "base/text.h"
#include "base/zone.h"
#include "ingest/derive/agents.h"
#include "ingest/derive/builds.h"
#include "ingest/derive/geo.h"
#include "ingest/derive/route.h"
#include "ingest/event.h"

enum derive_kind {
    DERIVE_QUERY,
    DERIVE_HOUR,
    DERIVE_DAY,
    DERIVE_HOST_NET,
    DERIVE_HOST_ID,
    DERIVE_COUNTRY,
    DERIVE_CITY,
    DERIVE_ASN,
    DERIVE_ROUTE,
    DERIVE_FAMILY,
    DERIVE_OS,
    DERIVE_BOT,
    DERIVE_COUNT
};

struct derive_field {
    enum derive_kind kind;
    enum field field;
    bool is_optional;       /* all events may have it by themselves: without its data, it is not made */
    struct slice parameter; /* NAME of a DERIVE_QUERY; lives as long as the process */
};

struct derive {
    char *timezone; /* name of a zone */
    bool anonymise;
    char *key; /* of host_id; NULL: none */
    char *agents_path;
    char *geo_path, *asn_path; /* of databases; NULL: none */
    struct route_rules routes;

    struct derive_field fields[FIELD_OWN_MAX]; /* that are asked for, each once */
    size_t field_count;
    struct derive_data *data; /* NULL: not opened */
    const struct zone *zone;  /* set by derive_open() if a field needs it */
};

/* The lists and databases that fields need. A reload replaces them together; each user holds one set. */
struct derive_data {
    size_t holders;
    struct geo *geo, *asn; /* NULL, each: no field needs it */
    struct agents *agents;
};

void derive_fini(struct derive *d);
/* Is it the name of a derived field? */
bool derive_is_name(struct slice name);
/* Makes the field known and asked for; `is_optional` as in struct derive_field. Pre: derive_is_name().
 * False: EX_CONFIG, there are too many own fields. */
bool derive_ask(struct derive *d, struct slice name, bool is_optional, struct err *e) MUST_CHECK;
/* Is it asked for? */
bool derive_has(const struct derive *d, enum field f);
/* What the field is made of: "host", "target", "time"; NULL: it is not asked for. */
const char *derive_source(const struct derive *d, enum field f);
/* Finds and loads what the fields that are asked for need. Call it before events are decoded. Errors:
 * EX_CONFIG, EX_OSFILE or EX_NOINPUT, which name the key or the package. */
bool derive_open(struct derive *d, struct err *e) MUST_CHECK;
/* Reads lists and databases anew, from the same paths, and takes them. If one is bad, all stay as they are:
 * the error names the key. *is_new: at least one is of another build. */
bool derive_reload(struct derive *d, bool *is_new, struct err *e) MUST_CHECK;
/* Holds the open set; the caller gives it back by derive_release(). NULL: none is open, or there are no
 * settings. Any thread. */
struct derive_data *derive_hold(const struct derive *d);
/* Holds a set that the caller holds once more. */
void derive_share(struct derive_data *data);
void derive_release(struct derive_data *data);
/* The builds of the lists and databases that are open. */
struct builds derive_builds(const struct derive *d);
/* Adds a line for each list and database that is open, each behind `prefix`: what it is, and when it was
 * built, or the hash of its bytes. */
void derive_print(const struct derive *d, const char *prefix, struct text *out);
/* Adds the settings that this field, built-in or derived, depends on, each as a line "NAME SETTING\n";
 * nothing if the field has none, or the default ones. That of a host_id is "host_id key FINGERPRINT". */
#define DERIVE_GIVEN_KEY " key "
void derive_given(const struct derive *d, enum field f, struct text *out);
