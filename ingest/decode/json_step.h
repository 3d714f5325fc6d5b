/* json_step.h - one step of a chain that reads JSON: it looks for values, and makes a text or an event of
 * them. chain.c calls it; values that do not fit are rejects.
 *
 * Owner   : texts are slices of the JSON, or of the arena where an escape was undone.
 * Columns : columns of rejects count from the first byte of the JSON value that was read, from 1.
 */
#pragma once

#include "base/arena.h"
#include "ingest/decode/decode.h"
#include "ingest/decode/json.h"
#include "ingest/decode/text_time.h"
#include "ingest/record.h"

#define JSON_TIMES_MAX 4

struct json_step {
    enum decode_step_kind kind;
    struct json_paths *paths;
    struct json_found found;
    enum field fields[FIELD_MAX]; /* fields that [json] and [metric] look for by themselves, by path */
    size_t field_count;           /* number of `fields`, below 64: their paths are the first ones */
    struct text_time time;
    size_t time_paths[JSON_TIMES_MAX];       /* the first path that has a value is the time */
    size_t time_count;                       /* 0: the time is the broker's */
    size_t string_path;                      /* a STEP_JSON_STRING's path */
    size_t name_path, value_path, tags_path; /* a STEP_METRIC's paths */
    const char *start;                       /* first byte of the value last read */
};

/* Makes step number `step` of `d`. */
struct json_step *json_step_new(const struct decode *d, size_t step, unsigned depth_max);
void json_step_free(struct json_step *js);
/* Makes it also look for an origin that is a pointer or a tag; returns the path. */
size_t json_step_add(struct json_step *js, const struct decode *d, const struct origin *o);

/* Reads a value as json_read() does. The functions below use the value last read. */
enum json_result json_step_read(struct json_step *js, struct slice text, const char **at);
/* The text at a path. *is_plain: it is known to have no odd byte. False: there is no text; the value is
 * absent, null, an object or an array. */
bool json_step_text(const struct json_step *js, size_t path, struct arena *memory, struct slice *text,
                    bool *is_plain);
size_t json_step_column(const struct json_step *js, size_t path);
/* The string that a STEP_JSON_STRING unwraps. False: *why says why there is none. */
bool json_step_unwrap(const struct json_step *js, struct arena *memory, struct slice *text,
                      struct reject *why);
/* Makes the event of a STEP_JSON or STEP_METRIC. False: *why says why it does not fit. */
bool json_step_event(struct json_step *js, const struct record *r, struct arena *memory, struct event *ev,
                     struct reject *why);
