/* format_item.h - the parts of a log format: literal text, and directives with what is known of their values.
 * format_apache.c and format_nginx.c make them, format_compile.c makes a program of them.
 */
#pragma once

#include "base/err.h"
#include "ingest/decode/format.h"

#define ITEMS_MAX (2 * FORMAT_OPS_MAX)

/* The bytes that a value may hold decide which separators may follow it. */
enum item_kind {
    ITEM_LITERAL,
    ITEM_WORD,    /* any but space, '"' and control bytes */
    ITEM_ADDRESS, /* of a name or address */
    ITEM_PATH,    /* a text that mostly has no space: without quotes it is read as a word */
    ITEM_TEXT,    /* any but '"' and control bytes */
    ITEM_USER,    /* as ITEM_TEXT; also ends before a time */
    ITEM_REQUEST,
    ITEM_TARGET,
    ITEM_STATUS,
    ITEM_BYTES,
    ITEM_NUMBER,
    ITEM_SUM, /* a list: see enum format_op_kind */
    ITEM_LAST,
    ITEM_LIST, /* a text: without quotes it is read as a list of words */
    ITEM_TIME
};

/* A row of a table of directives. */
struct item_type {
    const char *name; /* the directive's */
    enum item_kind kind;
    const char *field; /* NULL: checked, but not put */
    /* If directives of several ranks have the same field, the highest rank gets it. The others have the field
     * `other`; NULL: none. */
    int rank;
    const char *other;
    int scale; /* ITEM_NUMBER: millionths of the field's unit in one */
};

struct item {
    enum item_kind kind;
    struct slice text;            /* a literal's bytes, or the directive as written */
    size_t column;                /* in the format as given, from 1 */
    char field[FIELD_NAME_BYTES]; /* "": none */
    int rank;
    const char *other;
    int scale;
    enum format_op_kind time; /* an ITEM_TIME's */
    struct slice spec;        /* an OP_TIME_SPEC's */
};

struct items {
    enum format_escape escape;
    size_t count;
    struct item list[ITEMS_MAX];
};

/* A format without the directive and the quotes around it. */
struct format_source {
    size_t len;
    char bytes[FORMAT_TEXT_MAX];
    uint16_t columns[FORMAT_TEXT_MAX]; /* of each byte, in the format as given */
    enum format_escape escape;
};

/* format_source.c: takes off LogFormat or log_format, quotes and backslashes; replaces a server's name of a
 * format by the format. */
bool format_source_read(struct format_source *s, enum format_server server, struct slice text,
                        struct err *e) MUST_CHECK;
/* The format that the server ships by this name; NULL: none. */
const char *format_shipped(enum format_server server, struct slice name);

/* Each splits a source, which must live as long as the items. */
bool format_apache_split(const struct format_source *s, struct items *items, struct err *e) MUST_CHECK;
bool format_nginx_split(const struct format_source *s, struct items *items, struct err *e) MUST_CHECK;

/* format_item.c */

/* Adds [from, to) of the source as a literal (it grows the last one), or as an item of this type. */
bool items_add_literal(struct items *items, const struct format_source *s, size_t from, size_t to,
                       struct err *e) MUST_CHECK;
struct item *items_add(struct items *items, const struct format_source *s, size_t from, size_t to,
                       const struct item_type *type, struct err *e) MUST_CHECK;
/* Sets the field `prefix` + `name`, in small letters, with _ for any other byte. A name of a built-in field
 * gets header_ before it. */
bool item_set_name(struct item *it, const char *prefix, struct slice name, struct err *e) MUST_CHECK;
/* Sets the time of strftime()'s or Apache's `spec`. */
bool item_set_time(struct item *it, struct slice spec, struct err *e) MUST_CHECK;
