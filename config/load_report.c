#include "config/load.h"

#include "aggregate/keep.h"
#include "base/suggest.h"

/* Every word that a hint may suggest: dimensions, fields. */
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

/* Adds the built-in fields and the own fields of this configuration's sources. The process may know other own
 * fields from an earlier configuration. */
static size_t add_fields(const struct config *c, const char *words[], size_t count)
{
    enum field f = 0;
    for (; f < FIELD_COUNT; f++)
        words[count++] = field_name(f);
    for (size_t i = 0; i < c->source_count; i++) {
        const struct decode *d = &c->sources[i].decode;
        for (size_t k = 0; k < d->origin_count && count < WORDS_MAX; k++)
            words[count++] = field_name(d->origins[k].field);
        for (int k = FIELD_COUNT; k < FIELD_MAX && count < WORDS_MAX; k++) {
            if ((d->constants >> k & 1) != 0)
                words[count++] = field_name((enum field)k);
        }
    }
    return count;
}

static bool unknown_field(struct load *ld, const yaml_node_t *node, const char *path, enum report_piece kind,
                          struct slice name)
{
    char quote[SUGGEST_QUOTE_BYTES], hint[SUGGEST_HINT_BYTES];
    const char *words[WORDS_MAX + 1];
    size_t count = 0;
    while (kind == PIECE_DIMENSION && report_dimension_names[count] != NULL) {
        words[count] = report_dimension_names[count];
        count++;
    }
    words[add_fields(ld->c, words, count)] = NULL;
    document_problem(ld->d, node->start_mark, path, "found %s, expected a %s%s", suggest_quote(name, quote),
                     kind == PIECE_DIMENSION ? "dimension" : "field", suggest_hint(name, words, hint));
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
