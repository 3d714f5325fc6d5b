/* keys.h - the table of keys.def as data: parses a text into a member of struct config, and prints it.
 *
 * Types  : keys_types (key_types.c) has a row for each. A size is 512, 512B, 64KiB, 64MiB or 1GiB; a duration
 *          500ms, 1s, 5m, 2h or 1d. Both are printed with the largest unit that fits exactly, so that parsing
 *          a printed value gives the same number.
 * Errors : "found X, expected Y", EX_CONFIG; the caller puts file, line and key before it.
 */
#pragma once

#include "base/err.h"
#include "base/text.h"
#include "base/units.h"
#include "config/config.h"

#include <stdint.h>

/* Length of a secret in bytes. */
#define KEYS_SECRET_MIN 16
#define KEYS_SECRET_MAX 512

enum key_type {
    KEY_SIZE,
    KEY_DURATION,
    KEY_INTEGER,
    KEY_BOOLEAN,
    KEY_TEXT,
    KEY_PATH,
    KEY_URL,      /* may hold a password, so it may be read from a file */
    KEY_SECRET,   /* may be read from a file */
    KEY_PASSWORD, /* as another program gave it; may be read from a file */
    KEY_LISTEN,
    KEY_BROKERS,
    KEY_TOPIC,
    KEY_START,
    KEY_PREALLOCATE,
    KEY_SAMPLE,
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
    KEY_DECODE, /* this type and those below are lists and mappings */
    KEY_PATHS,
    KEY_FIELDS,
    KEY_RAW,
    KEY_PROPERTIES,
    KEY_ROUTES,
    KEY_DIMENSIONS,
    KEY_CONDITIONS,
    KEY_MEASURES,
    KEY_NEWEST_FIELDS,
    KEY_KEEP
};

/* The struct that has the member. */
enum key_owner { KEY_OF_config, KEY_OF_config_source, KEY_OF_report };

struct key {
    enum key_owner owner;
    const char *section, *name;
    enum key_type type;
    size_t offset, bytes; /* the member's offset and size in its struct */
    const char *unit;
    int64_t min, max;
    const char *standard; /* the default; NULL: none */
    bool reload;
    const char *help;
};

/* Adds one piece to a list or mapping of `base`; `name` is the piece's key in a mapping. */
typedef bool key_add_fn(struct slice name, struct slice text, void *base, struct err *e);

/* Traits that the keys of one type share. `base` is a struct of the key's owner. */
struct key_traits {
    const char *name;              /* as docs/CONFIG.md calls the type */
    const char *range;             /* the values, in words; NULL: `words`, or the key's min to max */
    const char *const *words;      /* a word's index is its value; NULL at the end */
    const struct unit *units;      /* of a size or duration */
    bool (*is_good)(struct slice); /* of parse_string() */
    const char *piece;             /* a piece of a list or mapping, in words */
    enum report_piece piece_kind;  /* says which field a piece uses */
    key_add_fn *add, *add_alone;   /* add_alone: the value may be one text; NULL: it may not */
    /* Sets the member. NULL: the type is a list or mapping. */
    bool (*parse)(const struct key *k, struct slice text, void *base, struct err *e);
    void (*print)(const struct key *k, const void *base, struct text *out);
};

struct key_section {
    const char *name, *help;
};

/* By enum key_type. */
extern const struct key_traits keys_types[];
/* Both in the order of keys.def; the last entry's name is NULL. */
extern const struct key keys_table[];
extern const struct key_section keys_sections[];
/* The names of keys_sections alone, NULL at the end. */
extern const char *const keys_section_names[];

const struct key *keys_find(const char *section, struct slice name);
bool keys_is_section(struct slice name);
bool keys_is_list(const struct key *k);
/* Is it UTF-8, not empty, and without control bytes? */
bool keys_is_line(struct slice text);
/* May its value be file:PATH? */
bool keys_may_be_file(const struct key *k);
/* Is its value never shown? */
bool keys_is_secret(const struct key *k);
/* Is its value printed in quotes? */
bool keys_is_text(const struct key *k);
/* May this source have the key of `sources`? Its type and decoding decide. */
bool keys_belongs(const struct key *k, const struct config_source *source);
/* Sets every member of `owner`'s struct that has a default. Pre: its strings are NULL. */
void keys_set_defaults(enum key_owner owner, void *base);
/* Sets the member from `text`. If the text came from the environment or a file, `reference` is the reference
 * as written: errors show it instead of the text. Otherwise `reference` is {0}. */
bool keys_parse(const struct key *k, struct slice text, struct slice reference, void *base,
                struct err *e) MUST_CHECK;
/* Adds the member as keys_parse() or the loader takes it; adds nothing for a string that is NULL. It may be a
 * secret: only compare it, never show it. */
void keys_print(const struct key *k, const void *base, struct text *out);
/* "16KiB to 1MiB", "file, stdin or kafka" */
void keys_range(const struct key *k, struct text *out);
/* The range in a sentence: "a size from 16KiB to 1MiB" */
void keys_expected(const struct key *k, struct text *out);
