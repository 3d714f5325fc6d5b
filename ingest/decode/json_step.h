/* json_step.h - one step of a chain that reads JSON: what it looks for, and what it makes of what it finds.
 *
 * Owner   : texts are slices of the JSON, or of the arena where an escape was undone.
 * Columns : of rejects are from the first byte of the JSON value that was read, from 1.
 */
#pragma once

#include "base/arena.h"
#include "ingest/decode/decode.h"
#include "ingest/decode/json.h"
#include "ingest/record.h"
#include "ingest/timestamp.h"

#define JSON_TIMES_MAX 4

struct json_step {
    enum decode_step_kind kind;
    struct json_paths *paths;
    struct json_found found;
    enum field fields[FIELD_MAX]; /* what [json] and [metric] look for by themselves, by path: … */
    size_t field_count;           /* … theirs are the first ones, and fewer than 64 */
    struct timestamp_minute minute;
    size_t time_paths[JSON_TIMES_MAX]; /* the first of them that is there is the time */
    size_t time_count;                 /* 0: the time is the broker's */
    size_t string_path;                /* of STEP_JSON_STRING; of STEP_METRIC: */
    size_t name_path, value_path, tags_path;
    const char *start; /* of the value last read */
};

/* Of step number `step` of `d`. */
struct json_step *json_step_new(const struct decode *d, size_t step, unsigned depth_max);
void json_step_free(struct json_step *js);
/* Have it look for an origin that is a pointer or a tag, too. */
size_t json_step_add(struct json_step *js, const struct decode *d, const struct origin *o);

/* As json_read(). What follows is about the value last read. */
enum json_result json_step_read(struct json_step *js, struct slice text, const char **at);
/* The text at a path, and whether it is known to have no odd byte; false where none is: it is absent, null,
 * an object or an array. */
bool json_step_text(const struct json_step *js, size_t path, struct arena *memory, struct slice *text,
                    bool *is_plain);
size_t json_step_column(const struct json_step *js, size_t path);
/* What STEP_JSON_STRING unwraps. */
bool json_step_unwrap(const struct json_step *js, struct arena *memory, struct slice *text,
                      struct reject *why);
/* The event of STEP_JSON or STEP_METRIC. */
bool json_step_event(struct json_step *js, const struct record *r, struct arena *memory, struct event *ev,
                     struct reject *why);
