#include "config/load.h"

#include "base/mem.h"
#include "base/utf8.h"
#include "config/expand.h"
#include "config/source_path.h"
#include "ingest/file/family.h"
#include "ingest/kafka/conf.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Is it text? Line feeds are allowed, since certificates have them. */
static bool is_text(struct slice s)
{
    const unsigned char *p = (const unsigned char *)s.ptr, *end = p + s.len;
    while (p < end && *p != '\0' && utf8_len(p, end) > 0)
        p += utf8_len(p, end);
    return p == end;
}

static bool add_property(struct load *ld, const struct pair *pr, struct err *e)
{
    struct config *c = ld->c;
    struct text value = {0};
    struct slice raw = document_scalar(pr->value);
    bool referred = false, good = expand_text(raw, true, &value, &referred, e);
    if (good) {
        text_puts(&value, ""); /* so that an empty value is not NULL */
        good = is_text(text_slice(&value)) ||
               err_set(e, EX_CONFIG, "found a value that is no text, expected UTF-8 without NUL");
    }
    char *name = xstrndup(pr->name.ptr, pr->name.len);
    if (good && kafka_conf_check(name, value.ptr, referred, e)) {
        c->kafka.properties[c->kafka.property_count++] =
            (struct kafka_property){name, xstrndup(value.ptr, value.len)};
        if (referred)
            load_note_reference(ld, pr->path, raw);
        name = NULL;
    } else {
        good = false;
    }
    free(name);
    text_fini(&value);
    return good;
}

void load_source_properties(struct load *ld, const struct key *k, const struct pair *pr)
{
    struct pair property;
    struct err e;
    if (document_is_mapping(ld->d, pr->value, pr->path, keys_types[k->type].range)) {
        ld->c->kafka.properties = xcalloc(CONFIG_PROPERTIES_MAX, sizeof *ld->c->kafka.properties);
        for (size_t i = 0; document_next(ld->d, pr->value, pr->path, &i, &property);) {
            if (ld->c->kafka.property_count == CONFIG_PROPERTIES_MAX) {
                document_problem(ld->d, property.key->start_mark, property.path,
                                 "found one more, expected at most %d", CONFIG_PROPERTIES_MAX);
                break;
            }
            if (load_is_text(ld, property.value, property.path, "a value in one text") &&
                !add_property(ld, &property, &e))
                document_problem(ld->d, property.value->start_mark, property.path, "%s", e.text);
        }
    }
}

/* Parses a path, whose captures are fields of the source from then on. */
static struct pattern *parse_path(struct slice text, struct config_source *source, struct err *e)
{
    char quote[SUGGEST_QUOTE_BYTES];
    bool good =
        keys_is_line(text) || err_set(e, EX_CONFIG, "found %s, expected a path", suggest_quote(text, quote));
    struct pattern *p = good ? pattern_new(text, e) : NULL;
    for (size_t i = 0; p != NULL && good && i < p->capture_count; i++)
        good = decode_add_constant(&source->decode, slice_text(p->captures[i]), e);
    if (good)
        return p;
    pattern_free(p);
    return NULL;
}

static bool has_path(const struct config_source *source, const struct pattern *p)
{
    for (size_t i = 0; i < source->path_count; i++) {
        if (strcmp(source->paths[i]->text, p->text) == 0)
            return true;
    }
    return false;
}

static bool add_path(struct load *ld, const struct pair *pr, struct slice raw, struct config_source *source,
                     struct err *e)
{
    char item[DOCUMENT_PATH_BYTES], quote[SUGGEST_QUOTE_BYTES];
    struct text text = {0};
    bool referred = false, good = expand_text(raw, false, &text, &referred, e);
    struct pattern *p = good ? parse_path(slice_of(text.len > 0 ? text.ptr : "", text.len), source, e) : NULL;
    text_fini(&text);
    if (p == NULL && good && referred) /* the text may be a secret */
        err_set(e, EX_CONFIG, "found %s, expected a path", suggest_quote(raw, quote));
    if (p == NULL)
        return false;
    if (has_path(source, p)) {
        pattern_free(p);
        return err_set(e, EX_CONFIG, "found %s twice, expected each path once", suggest_quote(raw, quote));
    }
    if (referred) {
        document_item_path(pr->path, source->path_count, item);
        load_note_reference(ld, item, raw);
    }
    source->paths = xrealloc(source->paths, (source->path_count + 1) * sizeof(struct pattern *));
    source->paths[source->path_count++] = p;
    source->path = source->path_count == 1 ? p->plain : NULL;
    return true;
}

static void read_path(struct load *ld, const struct pair *pr, const yaml_node_t *node,
                      struct config_source *source)
{
    struct err e;
    if (source->path_count == CONFIG_PATHS_MAX)
        document_problem(ld->d, node->start_mark, pr->path, "found one more, expected at most %d paths",
                         CONFIG_PATHS_MAX);
    else if (load_is_text(ld, node, pr->path, "a path") &&
             !add_path(ld, pr, document_scalar(node), source, &e))
        document_problem(ld->d, node->start_mark, pr->path, "%s", e.text);
}

void load_source_paths(struct load *ld, const struct pair *pr, struct config_source *source)
{
    const char *expected = keys_types[KEY_PATHS].range;
    size_t i = 0;
    if (pr->value->type == YAML_SCALAR_NODE) {
        read_path(ld, pr, pr->value, source);
    } else if (document_is_list(ld->d, pr->value, pr->path, expected)) {
        for (yaml_node_t *item; (item = document_next_item(ld->d, pr->value, &i)) != NULL;)
            read_path(ld, pr, item, source);
        if (i == 0)
            document_problem(ld->d, pr->value->start_mark, pr->path, "found an empty list, expected %s",
                             expected);
    }
}

/* Refuses keys that mean nothing for this kind of source. */
static void refuse_strangers(struct load *ld, const struct pair *pr, const struct config_source *source)
{
    struct pair found;
    for (const struct key *k = keys_table; k->name != NULL; k++) {
        if (k->owner != KEY_OF_config_source || keys_belongs(k, source) ||
            !document_find(ld->d, pr->value, pr->path, k->name, &found))
            continue;
        bool is_metric = k->type == KEY_METRIC, is_raw = strncmp(k->name, "raw_", 4) == 0;
        document_problem(ld->d, found.key->start_mark, found.path, "found it %s, expected it %s only",
                         is_metric ? "without the step metric"
                         : is_raw  ? "without raw"
                                   : "with another type",
                         is_metric                                     ? "with decode: [metric]"
                         : is_raw                                      ? "with raw: all, or a list"
                         : k->type == KEY_PATHS || k->type == KEY_PATH ? "with type: file"
                                                                       : "with type: kafka");
    }
}

/* Refuses origins that only messages have: a line has no key, no headers and no broker. */
static void refuse_messages(struct load *ld, const struct pair *pr, const struct config_source *source)
{
    struct text origin = {0};
    if (source->type == SOURCE_KAFKA)
        return;
    for (size_t i = 0; i < source->decode.origin_count; i++) {
        const struct origin *o = &source->decode.origins[i];
        if (o->kind == ORIGIN_POINTER || o->kind == ORIGIN_TAG)
            continue;
        text_clear(&origin);
        decode_print_origin(o, &origin);
        document_problem(ld->d, pr->key->start_mark, pr->path,
                         "found the field %s from %s, expected that with type: kafka only",
                         field_name(o->field), origin.ptr);
    }
    if (source->decode.time_is_brokers)
        document_problem(ld->d, pr->key->start_mark, pr->path,
                         "found time: broker, expected that with type: kafka only");
    text_fini(&origin);
}

/* Refuses steps that need a file, or a message. */
static void refuse_steps(struct load *ld, const struct pair *pr, const struct config_source *source)
{
    const char *binary = decode_binary_name(&source->decode);
    if (source->type != SOURCE_KAFKA && binary != NULL)
        document_problem(ld->d, pr->key->start_mark, pr->path,
                         "found %s, expected that with type: kafka only: its values are no lines", binary);
    if (source->type == SOURCE_KAFKA && decode_heeds_directives(&source->decode) &&
        source->decode.parts[0] == '\0')
        document_problem(ld->d, pr->key->start_mark, pr->path,
                         "found w3c without names, expected them with type: kafka, since the #Fields: of "
                         "another message is not found again after a restart: {w3c: date time c-ip}");
}

static bool ask_for_schema(struct load *ld, const struct decode *d, struct err *e)
{
    return !decode_needs_schema(d) ||
           registry_ask(&ld->c->registry, decode_schema_kind(d), d->schema_path, e);
}

static bool ask_for_raw(struct load *ld, const struct raw *r, struct err *e)
{
    bool good = true, is_derived;
    for (size_t i = 0; i < r->field_count && good; i++)
        good = load_derive_ask(ld, slice_text(r->fields[i].name), &is_derived, e);
    return good;
}

void load_source_read(struct load *ld, const struct pair *pr)
{
    struct config *c = ld->c;
    struct config_source *source = &c->sources[c->source_count];
    struct err e;
    *source = (struct config_source){.name = xstrndup(pr->name.ptr, pr->name.len)};
    source->raw.source = source->name;
    source->raw.number = (uint32_t)c->source_count;
    ld->source_marks[c->source_count++] = pr->key->start_mark;
    decode_init(&source->decode);
    source->decode.derive = &c->derive;
    source->decode.registry = &c->registry;
    keys_set_defaults(KEY_OF_config_source, source);
    if (!slice_is_name(pr->name, REPORT_NAME_BYTES))
        document_problem(ld->d, pr->key->start_mark, pr->path,
                         "found a name that cannot be, expected a-z, then a-z, 0-9 and _, at most %d",
                         REPORT_NAME_BYTES - 1);
    size_t problems = ld->d->problem_count;
    load_keys(ld, "sources", pr->path, pr->value, source);
    if (problems < ld->d->problem_count)
        return;
    if (!decode_finish(&source->decode, &e) || !ask_for_schema(ld, &source->decode, &e) ||
        !ask_for_raw(ld, &source->raw, &e) || !raw_finish(&source->raw, &source->decode, &e))
        document_problem(ld->d, pr->key->start_mark, pr->path, "%s", e.text);
    refuse_strangers(ld, pr, source);
    refuse_messages(ld, pr, source);
    refuse_steps(ld, pr, source);
    if (source->type == SOURCE_KAFKA && source->topic == NULL)
        source->topic = xstrdup(source->name);
}

static PRINTF_LIKE(3, 4) void source_problem(struct load *ld, size_t i, const char *format, ...)
{
    char path[DOCUMENT_PATH_BYTES], why[512];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    document_path("sources", slice_text(ld->c->sources[i].name), path);
    document_problem(ld->d, ld->source_marks[i], path, "%s", why);
}

static bool share_path(const struct config_source *a, const struct config_source *b)
{
    bool share = false;
    for (size_t i = 0; i < a->path_count && !share; i++)
        share = has_path(b, a->paths[i]);
    return share;
}

static void check_unique(struct load *ld, size_t i)
{
    const struct config_source *sources = ld->c->sources;
    for (size_t k = 0; k < i; k++) {
        if (sources[k].type != sources[i].type)
            continue;
        if (sources[i].type == SOURCE_STDIN)
            source_problem(ld, i, "found type stdin, expected it once (source %s has it)", sources[k].name);
        else if (share_path(&sources[i], &sources[k]))
            source_problem(ld, i, "found the path of source %s, expected each path once", sources[k].name);
        else if (sources[i].topic != NULL && sources[k].topic != NULL &&
                 strcmp(sources[i].topic, sources[k].topic) == 0)
            source_problem(ld, i, "found the topic of source %s, expected each topic once", sources[k].name);
    }
}

/* Does the file set kafka.brokers, even wrongly? Wrong brokers were noted before. */
static bool has_brokers(struct load *ld)
{
    struct pair kafka, brokers;
    return document_find(ld->d, document_root(ld->d), "", "kafka", &kafka) &&
           document_find(ld->d, kafka.value, "", "brokers", &brokers);
}

/* The path with its folder's links resolved: the file need not be there yet. */
static char *real_folder_path(const char *path)
{
    char real[PATH_MAX], *folders[FAMILY_FOLDERS];
    const char *slash = strrchr(path, '/');
    struct text whole = {0};
    family_folders(path, NULL, folders);
    text_printf(&whole, "%s/%s", realpath(folders[0], real) != NULL ? real : folders[0],
                slash != NULL ? slash + 1 : path);
    free(folders[0]);
    return whole.ptr;
}

/* A source that reads its own rejects would write more of them for ever. */
static void check_rejects_file(struct load *ld, const struct pair *pr)
{
    const struct config *c = ld->c;
    char *real = real_folder_path(c->rejects.file);
    for (size_t i = 0; i < c->source_count; i++) {
        if (source_path_match(&c->sources[i], c->rejects.file, NULL) ||
            source_path_match(&c->sources[i], real, NULL))
            document_problem(
                ld->d, pr->key->start_mark, pr->path,
                "found a file that the path of source %s matches, expected another: rejects would "
                "be read again",
                c->sources[i].name);
    }
    free(real);
}

static void check_rejects(struct load *ld)
{
    const struct config *c = ld->c;
    struct pair pr;
    if ((c->rejects.topic == NULL && c->rejects.file == NULL) ||
        !document_find(ld->d, document_root(ld->d), "", "rejects", &pr))
        return;
    if (c->rejects.file != NULL)
        check_rejects_file(ld, &pr);
    if (c->rejects.topic == NULL)
        return;
    if (c->rejects.file != NULL)
        document_problem(ld->d, pr.key->start_mark, pr.path,
                         "found a topic and a file, expected one of them");
    if (!has_brokers(ld))
        document_problem(ld->d, pr.key->start_mark, pr.path,
                         "found a topic, expected kafka.brokers to say where the cluster is");
}

static void check_registry(struct load *ld)
{
    struct pair pr;
    struct err e;
    yaml_node_t *root = document_root(ld->d);
    if (registry_check(&ld->c->registry, &e))
        return;
    bool has = document_find(ld->d, root, "", "registry", &pr);
    document_problem(ld->d, has ? pr.key->start_mark : root->start_mark, has ? pr.path : "", "%s", e.text);
}

/* A report called `raw` would conflict: it names its collections raw.day, raw events theirs raw.SOURCE. */
static bool has_report_raw(const struct config *c)
{
    for (size_t i = 0; i < c->report_count; i++) {
        if (strcmp(c->reports[i].name, "raw") == 0)
            return true;
    }
    return false;
}

void load_source_rules(struct load *ld)
{
    const struct config *c = ld->c;
    check_rejects(ld);
    check_registry(ld);
    for (size_t i = 0; i < c->source_count; i++) {
        check_unique(ld, i);
        if (c->sources[i].raw.kind != RAW_OFF && has_report_raw(c))
            source_problem(ld, i, "found raw beside a report called raw, expected another name of that");
        if (c->sources[i].type != SOURCE_KAFKA)
            continue;
        if (!has_brokers(ld))
            source_problem(ld, i, "found type kafka, expected kafka.brokers to say where the cluster is");
        if (c->rejects.topic != NULL && c->sources[i].topic != NULL &&
            strcmp(c->rejects.topic, c->sources[i].topic) == 0)
            source_problem(ld, i,
                           "found the topic of rejects, expected another: rejects would be read again");
    }
}
