/* chain_internal.h - the state of a chain, for chain.c and chain_unwrap.c. */
#pragma once

#include "base/arena.h"
#include "ingest/decode/chain_result.h"
#include "ingest/decode/constants.h"
#include "ingest/decode/decode.h"
#include "ingest/decode/decoder.h"
#include "ingest/decode/format_run.h"
#include "ingest/decode/json_step.h"
#include "ingest/decode/level.h"
#include "ingest/decode/metric_line.h"
#include "ingest/decode/otlp.h"
#include "ingest/decode/remote_write.h"
#include "ingest/decode/schema_step.h"
#include "ingest/decode/text_step.h"
#include "ingest/derive/derived.h"
#include "ingest/record.h"

/* A field that the configuration adds to the event of the last step. */
struct addition {
    struct origin origin;
    size_t path;       /* for a pointer or tag: its path in the innermost JSON, or the number of otlp.h */
    struct slice text; /* for other origins: the record's text; ptr NULL: none */
};

struct chain {
    struct decoder with_more; /* first: a struct chain is this decoder */
    const struct decode *decode;
    const struct constants *constants; /* NULL: none */
    struct derived *derived;           /* NULL: no field is made of others */
    size_t line_max;
    struct clf clf;
    struct format_run format;
    struct decoder *line;                     /* the decoder of a STEP_LINE: `clf` or `format` */
    struct json_step *json[DECODE_STEPS_MAX]; /* NULL: the step does not read JSON */
    const struct json_step *innermost;        /* the last entry of `json`; NULL: none */
    struct metric_line *values;               /* NULL: the last step has no metric values */
    struct slice values_line;                 /* the line that they are of */
    bool is_last_line;                        /* no line, or message of OTLP, comes behind that one */
    struct schema_step *schema;               /* NULL: no step needs schemas */
    struct otlp *otlp;                        /* NULL: the first step does not read it */
    struct remote_write *remote;              /* NULL: the only step does not read it */
    struct text_step *text;                   /* NULL: the last step does not find named parts */
    enum decode_step_kind kinds[DECODE_STEPS_MAX];
    struct level levels[DECODE_STEPS_MAX];
    size_t depth;      /* index of the level being read */
    bool needs_finish; /* do events need finish_event()? */
    const struct record *record;
    bool is_tombstone;
    bool is_record_hidden; /* are these the record's, for chain_hide()? */
    struct slice hidden_key, hidden_value;
    bool is_record_known; /* do the additions have this record's texts? */
    struct addition additions[DECODE_FIELDS_MAX];
    size_t addition_count;
    struct arena memory;
    size_t kept_bytes; /* of `memory`, once it was flushed */
};

static inline enum chain_result chain_refuse(struct reject *why, enum reject_reason reason, size_t column)
{
    *why = (struct reject){reason, column};
    return CHAIN_REJECT;
}

/* The step behind goes on with this text. */
static inline void chain_go_inside(struct chain *c, struct slice text)
{
    c->depth++;
    level_start(&c->levels[c->depth], text);
}

/* Unwrap the next line, value or message. CHAIN_END: the next step goes on with what is in it. */
enum chain_result chain_unwrap_syslog(struct chain *c, struct level *l, struct reject *why,
                                      struct slice *bytes);
enum chain_result chain_unwrap_cri(struct chain *c, struct level *l, struct reject *why, struct slice *bytes);
enum chain_result chain_unwrap_msgpack(struct chain *c, struct level *l, struct reject *why,
                                       struct slice *bytes);
enum chain_result chain_unwrap_schema(struct chain *c, struct level *l, struct reject *why,
                                      struct slice *bytes);
