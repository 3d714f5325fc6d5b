/* Steps that unwrap a message or a line for the step behind. */
#include "ingest/decode/chain_internal.h"
#include "ingest/decode/cri.h"
#include "ingest/decode/msgpack.h"
#include "ingest/decode/syslog.h"

enum chain_result chain_unwrap_syslog(struct chain *c, struct level *l, struct reject *why,
                                      struct slice *bytes)
{
    const char *at;
    struct slice line = *bytes = level_take_line(l), text;
    if (line.len > c->line_max)
        return chain_refuse(why, REJECT_TOO_LONG, c->line_max + 1);
    if (line.len == 0)
        return chain_refuse(why, REJECT_EMPTY, 1);
    if (!syslog_parse(line, &text, &at))
        return chain_refuse(why, REJECT_SYSLOG, (size_t)(at - line.ptr) + 1);
    chain_go_inside(c, text);
    return CHAIN_END;
}

enum chain_result chain_unwrap_cri(struct chain *c, struct level *l, struct reject *why, struct slice *bytes)
{
    const char *at;
    struct cri_text found;
    struct slice line = *bytes = level_take_line(l);
    if (line.len > c->line_max)
        return chain_refuse(why, REJECT_TOO_LONG, c->line_max + 1);
    if (line.len == 0)
        return chain_refuse(why, REJECT_EMPTY, 1);
    if (!cri_parse(line, &found, &at))
        return chain_refuse(why, REJECT_CRI, (size_t)(at - line.ptr) + 1);
    if (found.is_part)
        return chain_refuse(why, REJECT_PART, (size_t)(at - line.ptr) + 1);
    chain_go_inside(c, found.text);
    return CHAIN_END;
}

/* Writes the next value as JSON. */
enum chain_result chain_unwrap_msgpack(struct chain *c, struct level *l, struct reject *why,
                                       struct slice *bytes)
{
    struct slice json;
    const char *at, *end;
    *bytes = slice_of(l->p, (size_t)(l->end - l->p));
    l->is_done = true;
    if (bytes->len == 0)
        return chain_refuse(why, REJECT_EMPTY, 1);
    if (bytes->len > c->line_max)
        return chain_refuse(why, REJECT_TOO_LONG, c->line_max + 1);
    end = msgpack_to_json(*bytes, &c->memory, &json, &at);
    if (end == NULL)
        return chain_refuse(why, REJECT_MSGPACK, (size_t)(at - bytes->ptr) + 1);
    l->p = end;
    l->is_done = end == l->end;
    chain_go_inside(c, json);
    return CHAIN_END;
}

/* Writes the message as JSON, by its schema. */
enum chain_result chain_unwrap_schema(struct chain *c, struct level *l, struct reject *why,
                                      struct slice *bytes)
{
    struct slice json;
    *bytes = c->record->value;
    l->is_done = true;
    if (bytes->len == 0)
        return chain_refuse(why, REJECT_EMPTY, 1);
    if (bytes->len > c->line_max)
        return chain_refuse(why, REJECT_TOO_LONG, c->line_max + 1);
    if (!schema_step_unwrap(c->schema, c->record, &c->memory, &json, why))
        return CHAIN_REJECT;
    chain_go_inside(c, json);
    return CHAIN_END;
}
