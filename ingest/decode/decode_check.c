/* Checks that fit the pieces of a configuration together. */
#include "base/snappy.h"
#include "ingest/decode/decode.h"
#include "ingest/decode/w3c.h"

static bool check_origins(const struct decode *d, enum decode_step_kind last, struct err *e)
{
    bool has_json = false;
    for (size_t i = 0; i < d->step_count; i++)
        has_json |= decode_step_reads_json(d->steps[i].kind);
    for (size_t i = 0; i < d->origin_count; i++) {
        const struct origin *o = &d->origins[i];
        if ((d->constants >> o->field & 1) != 0)
            return err_set(e, EX_CONFIG, "found the field %s in the path and in fields, expected it in one",
                           field_name(o->field));
        if (o->kind == ORIGIN_TAG && !decode_step_has_tags(last) && d->steps[0].kind != STEP_OTLP)
            return err_set(
                e, EX_CONFIG,
                "found tag:%s, expected it only where decode ends in metric or remote_write, or begins "
                "with otlp",
                o->text);
        if (o->kind == ORIGIN_POINTER && !has_json)
            return err_set(e, EX_CONFIG, "found %s, expected a pointer only where decode has a JSON step",
                           o->text);
    }
    return true;
}

static bool check_metric(const struct decode *d, struct err *e)
{
    for (int i = 0; i < METRIC_MEMBER_COUNT; i++) {
        for (int k = 0; k < i; k++) {
            if (strcmp(d->metric[i], d->metric[k]) == 0)
                return err_set(e, EX_CONFIG, "found \"%s\" twice, expected a metric's members to differ",
                               d->metric[i]);
        }
    }
    return true;
}

static bool check_time(const struct decode *d, enum decode_step_kind last, struct err *e)
{
    bool has_parts = decode_step_has_parts(last);
    if (d->time_pointer[0] == '\0' || last == STEP_JSON)
        return true;
    if (!has_parts || last == STEP_W3C)
        return err_set(
            e, EX_CONFIG,
            "found %s, expected a time's pointer only where decode ends in json, logfmt, csv, tsv or regex",
            d->time_pointer);
    return (d->time_pointer[1] != '\0' && strpbrk(d->time_pointer + 1, "/~") == NULL) ||
           err_set(e, EX_CONFIG, "found %s, expected a time's pointer of one name, as /when",
                   d->time_pointer);
}

/* The #Fields: of a file is known at every place of it. Elsewhere names must be given. */
static bool check_w3c(const struct decode *d, enum decode_step_kind last, struct err *e)
{
    if (last != STEP_W3C || (d->parts[0] == '\0' && d->step_count == 1))
        return true;
    if (d->parts[0] == '\0')
        return err_set(e, EX_CONFIG,
                       "found w3c behind another step, expected its names: {w3c: date time c-ip}");
    return w3c_names_are_good(slice_text(d->parts), !d->time_is_brokers, e);
}

/* A message of a binary format is whole, and becomes JSON. */
static bool check_binary(const struct decode *d, struct err *e)
{
    for (size_t i = 0; i < d->step_count; i++) {
        const char *name = d->steps[i].kind == STEP_MSGPACK ? "msgpack"
                           : d->steps[i].kind == STEP_AVRO  ? "avro"
                                                            : "protobuf";
        bool is_good = i == 0 && d->step_count > 1 && decode_step_reads_json(d->steps[1].kind);
        if (decode_step_is_binary(d->steps[i].kind) && !is_good)
            return err_set(e, EX_CONFIG,
                           "found %s, expected it first, and a step of JSON behind it: [%s, json]", name,
                           name);
    }
    return true;
}

/* OTLP is a whole message. */
static bool check_otlp(const struct decode *d, struct err *e)
{
    for (size_t i = 1; i < d->step_count; i++) {
        if (d->steps[i].kind == STEP_OTLP)
            return err_set(e, EX_CONFIG, "found otlp behind another step, expected it first");
    }
    return true;
}

/* A request of remote write is a whole message. */
static bool check_remote_write(const struct decode *d, struct err *e)
{
    for (size_t i = 0; i < d->step_count; i++) {
        if (d->steps[i].kind == STEP_REMOTE_WRITE)
            return (i == 0 ||
                    err_set(e, EX_CONFIG, "found remote_write behind another step, expected it alone")) &&
                   snappy_load(e);
    }
    return true;
}

bool decode_check(const struct decode *d, enum decode_step_kind last, struct err *e)
{
    return check_time(d, last, e) && check_origins(d, last, e) && check_metric(d, e) &&
           check_w3c(d, last, e) && check_binary(d, e) && check_otlp(d, e) && check_remote_write(d, e);
}
