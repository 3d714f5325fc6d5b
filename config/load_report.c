#include "config/load.h"

#include "aggregate/keep.h"
#include "base/suggest.h"

/* More than there are dimensions and fields. */
#define WORDS_MAX 128

static bool is_provided(const struct config *c, enum field f)
{
    bool provided = false;
    for (size_t i = 0; i < c->source_count && !provided; i++)
        provided = decode_provides(&c->sources[i].decode, f);
    return provided;
}

static bool has_open_source(const struct config *c)
{
    bool open = false;
    for (size_t i = 0; i < c->source_count && !open; i++)
        open = decode_is_open(&c->sources[i].decode);
    return open;
}

/* Words that a hint may suggest, each once. */
struct words {
    const char *list[WORDS_MAX + 1]; /* ends with NULL */
    size_t count;
};

static void add_word(struct words *w, const char *word)
{
    for (size_t i = 0; i < w->count; i++) {
        if (strcmp(w->list[i], word) == 0)
            return;
    }
    ASSERT(w->count < WORDS_MAX);
    w->list[w->count++] = word;
}

/* Adds the built-in fields and the own fields of this configuration's sources. The process may know other own
 * fields from an earlier configuration. */
static void add_fields(const struct config *c, struct words *w)
{
    for (enum field f = 0; f < FIELD_COUNT; f++)
        add_word(w, field_name(f));
    for (size_t i = 0; i < c->source_count; i++) {
        uint64_t fields = decode_fields(&c->sources[i].decode);
        for (int f = FIELD_COUNT; f < FIELD_MAX; f++) {
            if ((fields >> f & 1) != 0)
                add_word(w, field_name((enum field)f));
        }
    }
}

/* Names that other programs have for fields. */
static const struct alias {
    const char *name, *meant;
} aliases[] = {
    {"ip", "\"host\""},
    {"client_ip", "\"host\""},
    {"remote_addr", "\"host\""},
    {"remote_user", "\"user\""},
    {"http_referer", "\"referrer\""},
    {"user_agent", "\"agent\""},
    {"http_user_agent", "\"agent\""},
    {"url", "\"path\", or \"target\" with its query"},
    {"uri", "\"path\", or \"target\" with its query"},
    {"request_uri", "\"path\", or \"target\" with its query"},
    {"body_bytes_sent", "\"bytes\""},
    {"hour", "\"hour_of_day\""},
    {"weekday", "\"day_of_week\""},
};

static const char *const durations[] = {"duration", "request_time", "response_time", "latency", "time_taken"};
static const char *const times[] = {"time", "date", "timestamp", "minute", "day"};

static bool is_one_of(struct slice name, const char *const names[], size_t count)
{
    size_t i = 0;
    while (i < count && !slice_is(name, names[i]))
        i++;
    return i < count;
}

static bool provides_duration(const struct config *c)
{
    enum field f;
    return field_parse(slice_text("duration"), &f) && is_provided(c, f);
}

/* Adds what the user most likely means. False: nobody knows. */
static bool print_meant(const struct config *c, struct slice name, enum report_piece kind, struct text *out)
{
    for (size_t i = 0; i < COUNT_OF(aliases); i++) {
        if (!slice_is(name, aliases[i].name))
            continue;
        text_printf(out, " (did you mean %s?)", aliases[i].meant);
        return true;
    }
    bool is_duration = is_one_of(name, durations, COUNT_OF(durations));
    if (is_duration && provides_duration(c))
        text_puts(out, " (did you mean \"duration\"?)");
    else if (is_duration)
        text_puts(out, ": no source has a duration, as auto skips it. Give one the server's format: decode: "
                       "[{nginx: '… $request_time'}] or [{apache: '… %D'}]");
    bool is_time = kind == PIECE_DIMENSION && is_one_of(name, times, COUNT_OF(times));
    if (is_time)
        text_puts(out, ": every report counts by time, and a query has its --step");
    return is_duration || is_time;
}

/* Adds the nearest word, or all of them. */
static void print_words(const struct words *w, struct slice name, struct text *out)
{
    char hint[SUGGEST_HINT_BYTES];
    text_puts(out, suggest_hint(name, w->list, hint));
    for (size_t i = 0; hint[0] == '\0' && i < w->count; i++)
        text_printf(out, "%s%s", i == 0 ? ": one of " : ", ", w->list[i]);
}

static bool unknown_field(struct load *ld, const yaml_node_t *node, const char *path, enum report_piece kind,
                          struct slice name)
{
    char quote[SUGGEST_QUOTE_BYTES];
    struct words words = {.count = 0};
    struct text hint = {0};
    for (size_t i = 0; kind == PIECE_DIMENSION && report_dimension_names[i] != NULL; i++)
        add_word(&words, report_dimension_names[i]);
    add_fields(ld->c, &words);
    if (!print_meant(ld->c, name, kind, &hint))
        print_words(&words, name, &hint);
    document_problem(ld->d, node->start_mark, path, "found %s, expected a %s%s", suggest_quote(name, quote),
                     kind == PIECE_DIMENSION ? "dimension" : "field", hint.ptr);
    text_fini(&hint);
    return false;
}

static bool may_use_field(struct load *ld, const yaml_node_t *node, const char *path, enum report_piece kind,
                          struct slice name)
{
    enum field f;
    struct err e;
    bool is_derived, is_known = field_parse(name, &f);
    if (is_known && f < FIELD_COUNT)
        return true;
    if (!ld->sources_are_good)
        return false;
    if (!load_derive_ask(ld, name, &is_derived, &e)) {
        document_problem(ld->d, node->start_mark, path, "%s", e.text);
        return false;
    }
    if (is_derived || (is_known && is_provided(ld->c, f)))
        return true;
    if (!has_open_source(ld->c))
        return unknown_field(ld, node, path, kind, name);
    if (field_intern(name, &f))
        return true;
    document_problem(ld->d, node->start_mark, path,
                     "found one more field \"%.*s\", expected at most %d of your own, shorter than %d",
                     SLICE_ARGS(name), FIELD_OWN_MAX, FIELD_NAME_BYTES);
    return false;
}

bool load_may_use(struct load *ld, const yaml_node_t *node, const char *path, enum report_piece kind)
{
    struct slice names[MEASURE_DIMENSIONS_MAX];
    const size_t count = report_piece_fields(kind, document_scalar(node), names);
    size_t i = 0;
    while (i < count && may_use_field(ld, node, path, kind, names[i]))
        i++;
    return i == count;
}

void load_report_read(struct load *ld, const struct pair *pr)
{
    struct config *c = ld->c;
    struct report *r = &c->reports[c->report_count++];
    struct err e;
    /* The name is wrong, but its keys are still checked. */
    if (!report_init(r, pr->name, 1, &e)) {
        document_problem(ld->d, pr->key->start_mark, pr->path, "%s", e.text);
        bool good = report_init(r, slice_text("unnamed"), 1, &e);
        ASSERT(good);
    }
    keys_set_defaults(KEY_OF_report, r);
    load_keys(ld, "reports", pr->path, pr->value, r);
    load_derive_given(&c->derive, r);
    if (!keep_check(r, &e) || !report_finish(r, &e))
        document_problem(ld->d, pr->key->start_mark, pr->path, "%s", e.text);
}
