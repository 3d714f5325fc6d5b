/* keys.h - the table of keys.def as data: from a text to a member of struct config, and back.
 *
 * Types  : sizes are 512, 512B, 64KiB, 64MiB, 1GiB; durations 500ms, 1s, 5m, 2h, 1d; both are printed with
 *          the largest unit that fits exactly, so that reading what was printed gives the same number.
 * Errors : "found X, expected Y", EX_CONFIG; whoever calls puts file, line and key before it.
 */
#pragma once

#include "base/err.h"
#include "base/text.h"
#include "base/units.h"
#include "config/config.h"

#include <stdint.h>

/* Bytes of a secret. */
#define KEYS_SECRET_MIN 16
#define KEYS_SECRET_MAX 512

enum key_type {
    KEY_SIZE,
    KEY_DURATION,
    KEY_INTEGER,
    KEY_BOOLEAN,
    KEY_TEXT,
    KEY_PATH,
    KEY_URL,    /* may also be read from a file, since it may hold a password */
    KEY_SECRET, /* likewise */
    KEY_LISTEN,
    KEY_BROKERS,
    KEY_TOPIC,
    KEY_START,
    KEY_PREALLOCATE,
    KEY_TIME,
    KEY_METRIC,
    KEY_RAW_W,
    KEY_RAW_GROWTH,
    KEY_SOURCE_TYPE,
    KEY_LOG_LEVEL,
    KEY_LAYOUT,
    KEY_VALIDATION,
    KEY_PREALLOCATE_AS,
    KEY_WEEKDAY,
    KEY_DECODE, /* from here on lists and mappings: built by decode_add_…(), raw_add_field() … */
    KEY_FIELDS,
    KEY_RAW,
    KEY_PROPERTIES,
    KEY_DIMENSIONS, /* … and report_add_…() */
    KEY_CONDITIONS,
    KEY_MEASURES,
    KEY_KEEP /* by keep_set() */
};

/* Which struct the member belongs to. */
enum key_owner { KEY_OF_config, KEY_OF_config_source, KEY_OF_report };

struct key {
    enum key_owner owner;
    const char *section, *name;
    enum key_type type;
    size_t offset, bytes; /* of the member */
    const char *unit;
    int64_t min, max;
    const char *standard; /* the default, NULL: none */
    bool reload;
    const char *help;
};

struct key_section {
    const char *name, *help;
};

/* In the order of keys.def; both end with a name of NULL. */
extern const struct key keys_table[];
extern const struct key_section keys_sections[];
/* The names of keys_sections alone, NULL at the end. */
extern const char *const keys_section_names[];

const struct key *keys_find(const char *section, struct slice name);
bool keys_is_section(struct slice name);
bool keys_is_list(const struct key *k);
/* Text without control bytes, UTF-8, not empty? */
bool keys_is_line(struct slice text);
/* May its value be read from a file, by file:PATH? */
bool keys_may_be_file(const struct key *k);
/* Is its value printed in quotes? */
bool keys_is_text(const struct key *k);
/* A source's type and decoding decide which of the keys of `sources` it may have. */
bool keys_belongs(const struct key *k, const struct config_source *source);
/* The words that a key takes, each at the index that stands for it; NULL at the end. */
const char *const *keys_choices(const struct key *k);
/* Of a size or duration, smallest first; a name of NULL at the end. */
const struct unit *keys_units(const struct key *k);
/* Set every member of `owner`'s struct that has a default; its strings are NULL before. */
void keys_set_defaults(enum key_owner owner, void *base);
/* Set the member from `text`. `reference` is {0}, or how the text was written where it came from the
 * environment or a file: an error then shows this and not the text. */
bool keys_parse(const struct key *k, struct slice text, struct slice reference, void *base,
                struct err *e) MUST_CHECK;
/* The member as keys_parse() takes it; nothing where it is a string that is NULL. */
void keys_print(const struct key *k, const void *base, struct text *out);
/* "16KiB to 1MiB", "file, stdin or kafka" */
void keys_range(const struct key *k, struct text *out);
/* The same in a sentence: "a size from 16KiB to 1MiB" */
void keys_expected(const struct key *k, struct text *out);
