/* format.h - a log format as the server's configuration has it, compiled once into a small program of scans.
 * decode.c compiles it, format_run.c runs it.
 *
 *   apache: '%v %h %l %u %t "%r" %>s %O "%{Referer}i" "%{User-Agent}i" %D'      a LogFormat
 *   nginx:  '$remote_addr - $remote_user [$time_local] "$request" $status …'    a log_format
 *
 *   text ─▶ format_source.c ─▶ format_apache.c, format_nginx.c ─▶ items ─▶ format_compile.c ─▶ struct format
 *
 * Text    : the format; the whole directive (LogFormat "…" name, log_format name '…' '…';); or a name that
 *           the server ships (combined). escape=json and escape=none may stand before nginx's format.
 * Fields  : directives become built-in fields (event.h), or own fields with clear names: docs/formats.md.
 * Refused : two fields with nothing between them, or a separator that may stand in the field before it: a
 *           line could be read in two ways.
 * Shape   : an op is one field and the literal text behind it. The text before the first field is the literal
 *           of an op of its own, OP_NOTHING.
 * Errors  : EX_CONFIG, "found … in column …, expected …"; the struct is then unusable.
 * Threads : read-only once compiled; shared by all.
 */
#pragma once

#include "base/err.h"
#include "ingest/decode/clf_any.h"

#define FORMAT_TEXT_MAX 2000 /* bytes of the format as given */
#define FORMAT_OPS_MAX  60

enum format_server { FORMAT_APACHE, FORMAT_NGINX };

/* The meaning of a backslash in a field. */
enum format_escape {
    ESCAPE_LOG,  /* \" \\ \n \t \xHH, as Apache writes; nginx writes only \xHH */
    ESCAPE_JSON, /* as in a JSON string */
    ESCAPE_NONE  /* itself */
};

enum format_op_kind {
    OP_NOTHING, /* only its literal */
    OP_WORD,    /* ends at the first byte of its literal, and is not empty */
    OP_TEXT,    /* ends at the first `stop` that is not escaped; the literal ends or begins there */
    OP_REQUEST, /* the same; also sets method, target, path and protocol */
    OP_TARGET,  /* the same; also sets the path */
    OP_USER,    /* ends at the first place at which the literal and the next op, a time, fit */
    OP_STATUS,
    OP_BYTES,
    OP_NUMBER,       /* a decimal number */
    OP_SUM,          /* numbers with ", " or " : " between them: their sum */
    OP_LAST,         /* words with ", " or " : " between them: the last */
    OP_LIST,         /* words with ", " between them: all */
    OP_NAME,         /* a host before ":port": ends at the last ':' before a space */
    OP_TIME_CLF,     /* [10/Oct/2000:13:55:36 -0700] */
    OP_TIME_LOCAL,   /* the same without brackets */
    OP_TIME_ISO,     /* 2000-10-10T13:55:36-07:00 */
    OP_TIME_EPOCH,   /* a number; `scale` is milliseconds or, if negative, fractions of one: -1000 is µs */
    OP_TIME_SPEC,    /* as strftime() writes it; the pool has the specification */
    OP_TIME_FRACTION /* `scale` digits of a second's fraction */
};

#define FORMAT_NO_FIELD 0xFF /* the value is only checked */

struct format_op {
    uint8_t kind, field;
    uint8_t reason; /* enum reject_reason if the field does not fit */
    char stop; /* OP_TEXT and its like: the byte that no value holds; '\0': the value ends with the line */
    uint16_t stop_at;              /* its index in the literal */
    uint16_t literal, literal_len; /* in the pool */
    uint16_t spec, spec_len;       /* OP_TIME_SPEC: in the pool */
    uint64_t first,
        mask;      /* the literal's first bytes, to compare eight at once; the mask clears the others */
    int32_t scale; /* OP_NUMBER: millionths of the field's unit in one; see also the times */
    bool is_time;  /* of several times, the event's; of OP_TIME_SPEC all are */
};

struct format {
    enum format_server server;
    enum format_escape escape;
    bool is_builtin; /* `builtin` reads the same lines */
    enum clf_format builtin;
    bool has_time;
    bool is_assembled; /* the time consists of OP_TIME_SPEC and OP_TIME_FRACTION */
    uint64_t fields;   /* bit per enum field that events may have */
    size_t op_count;
    struct format_op ops[FORMAT_OPS_MAX];
    size_t pool_len;
    char pool[FORMAT_TEXT_MAX];
    size_t text_len;
    char text[FORMAT_TEXT_MAX]; /* as given */
};

/* "apache", "nginx" */
const char *format_server_name(enum format_server server);
/* False: nothing is compiled. */
bool format_compile(struct format *f, enum format_server server, struct slice text, struct err *e) MUST_CHECK;
