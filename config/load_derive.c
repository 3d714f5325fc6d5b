#include "config/load.h"

#define EXPECTED "a rule such as {match: '^/shop/.*', replace: /shop}"

/* Reads one text of a rule. The texts may have ${ in them, which stands for itself. False: it is none, or is
 * missing; a problem is noted. */
static bool read_text(struct load *ld, yaml_node_t *rule, const char *path, const char *name,
                      struct slice *text)
{
    struct pair pr;
    if (!document_find(ld->d, rule, path, name, &pr)) {
        document_problem(ld->d, rule->start_mark, path, "found no %s, expected " EXPECTED, name);
        return false;
    }
    if (!load_is_text(ld, pr.value, pr.path, "a text"))
        return false;
    *text = document_scalar(pr.value);
    if (keys_is_line(*text) || text->len == 0)
        return true;
    document_problem(ld->d, pr.value->start_mark, pr.path,
                     "found a control character, expected a text of one line");
    return false;
}

static void read_rule(struct load *ld, yaml_node_t *rule, const char *path)
{
    struct pair pr;
    struct slice match, replace;
    struct err e;
    if (!document_is_mapping(ld->d, rule, path, EXPECTED))
        return;
    for (size_t i = 0; document_next(ld->d, rule, path, &i, &pr);) {
        if (!slice_is(pr.name, "match") && !slice_is(pr.name, "replace")) {
            document_problem(ld->d, pr.key->start_mark, pr.path,
                             "found an unknown key, expected match or replace");
            return;
        }
    }
    if (read_text(ld, rule, path, "match", &match) && read_text(ld, rule, path, "replace", &replace) &&
        !route_add_rule(&ld->c->derive.routes, match, replace, &e))
        document_problem(ld->d, rule->start_mark, path, "%s", e.text);
}

void load_derive_routes(struct load *ld, const struct key *k, const struct pair *pr)
{
    char path[DOCUMENT_PATH_BYTES];
    if (!document_is_list(ld->d, pr->value, pr->path, keys_types[k->type].range))
        return;
    for (size_t i = 0;;) {
        document_item_path(pr->path, i, path);
        yaml_node_t *rule = document_next_item(ld->d, pr->value, &i);
        if (rule == NULL)
            return;
        read_rule(ld, rule, path);
    }
}

bool load_derive_ask(struct load *ld, struct slice name, bool *is_derived, struct err *e)
{
    const struct config *c = ld->c;
    enum field f;
    bool is_own = field_parse(name, &f) && c->source_count > 0, may_be_own = c->source_count > 0;
    for (size_t i = 0; i < c->source_count; i++) {
        const struct decode *d = &c->sources[i].decode;
        is_own = is_own && (decode_fields(d) >> f & 1) != 0;
        may_be_own = may_be_own && decode_is_open(d);
    }
    *is_derived = derive_is_name(name) && !is_own;
    return !*is_derived || derive_ask(&ld->c->derive, name, may_be_own, e);
}

void load_derive_given(const struct derive *d, struct report *r)
{
    struct text given = {0};
    if (report_uses(r, FIELD_HOST))
        derive_given(d, FIELD_HOST, &given);
    for (enum derive_kind kind = 0; kind < DERIVE_COUNT; kind++) {
        for (size_t i = 0; i < d->field_count; i++) {
            if (d->fields[i].kind == kind && report_uses(r, d->fields[i].field))
                derive_given(d, d->fields[i].field, &given);
        }
    }
    report_set_given(r, text_slice(&given));
    text_fini(&given);
}
