#include "ingest/derive/agents.h"

#include "base/check.h"
#include "base/mem.h"
#include "ingest/derive/literal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>
#include <yaml.h>

#define TRIPLE_BITS 4096 /* of a set of three letters each */
#define TRIPLES_MAX 8    /* of an expression that are looked for */
#define STEPS       20000
#define OTHER       "Other"
#define SPIDER      "Spider"

struct expression {
    struct pcre *regex;
    char *replacement; /* NULL: the first group */
    size_t triple_count;
    uint16_t triples[TRIPLES_MAX];
};

struct agents {
    struct expression *lists[AGENTS_LIST_COUNT];
    size_t counts[AGENTS_LIST_COUNT];
    uint64_t hash;
};

static const struct {
    const char *name, *replacement;
} list_keys[AGENTS_LIST_COUNT] = {[AGENTS_FAMILY] = {"user_agent_parsers", "family_replacement"},
                                  [AGENTS_OS] = {"os_parsers", "os_replacement"},
                                  [AGENTS_DEVICE] = {"device_parsers", "device_replacement"}};

void agents_free(struct agents *a)
{
    if (a == NULL)
        return;
    for (int list = 0; list < AGENTS_LIST_COUNT; list++) {
        for (size_t i = 0; i < a->counts[list]; i++) {
            pcre_free(a->lists[list][i].regex);
            free(a->lists[list][i].replacement);
        }
        free(a->lists[list]);
    }
    free(a);
}

size_t agents_count(const struct agents *a)
{
    size_t count = 0;
    for (int list = 0; list < AGENTS_LIST_COUNT; list++)
        count += a->counts[list];
    return count;
}

uint64_t agents_hash(const struct agents *a)
{
    return a->hash;
}

/* ---- loading */

/* The place of three letters, of any case, in a set. */
static uint16_t triple_at(const char *p)
{
    unsigned a = (unsigned char)p[0] | 0x20u, b = (unsigned char)p[1] | 0x20u,
             c = (unsigned char)p[2] | 0x20u;
    return (uint16_t)((a ^ b << 3 ^ c << 6) % TRIPLE_BITS);
}

static struct slice scalar(yaml_document_t *doc, int id)
{
    yaml_node_t *node = yaml_document_get_node(doc, id);
    if (node == NULL || node->type != YAML_SCALAR_NODE)
        return (struct slice){NULL, 0};
    return slice_of((const char *)node->data.scalar.value, node->data.scalar.length);
}

static bool is_good_replacement(struct slice s)
{
    return memchr(s.ptr, '\0', s.len) == NULL;
}

static bool read_expression(yaml_document_t *doc, yaml_node_t *map, enum agents_list list,
                            struct expression *x, struct err *e)
{
    struct slice pattern = {NULL, 0}, replacement = {NULL, 0}, flag = {NULL, 0};
    char literal[LITERAL_BYTES];
    for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top; p++) {
        struct slice key = scalar(doc, p->key), value = scalar(doc, p->value);
        if (slice_is(key, "regex"))
            pattern = value;
        else if (slice_is(key, "regex_flag"))
            flag = value;
        else if (slice_is(key, list_keys[list].replacement))
            replacement = value;
    }
    if (pattern.ptr == NULL || (replacement.ptr != NULL && !is_good_replacement(replacement)))
        return err_set(e, EX_DATAERR, "line %zu: found no expression, expected regex: …",
                       map->start_mark.line + 1);
    x->regex = pcre_new(pattern, PCRE_FAST | (slice_is(flag, "i") ? PCRE_CASELESS : 0), e);
    if (x->regex == NULL)
        return err_prefix(e, "line %zu", map->start_mark.line + 1);
    x->replacement = replacement.ptr != NULL ? xstrndup(replacement.ptr, replacement.len) : NULL;
    size_t len = literal_find(pattern, literal), step = len / TRIPLES_MAX + 1;
    for (size_t i = 0; i + 2 < len && x->triple_count < TRIPLES_MAX; i += step)
        x->triples[x->triple_count++] = triple_at(literal + i);
    return true;
}

static bool read_list(struct agents *a, yaml_document_t *doc, yaml_node_t *seq, enum agents_list list,
                      struct err *e)
{
    size_t capacity = 0;
    if (seq->type != YAML_SEQUENCE_NODE || a->counts[list] > 0)
        return err_set(e, EX_DATAERR, "line %zu: found no list, expected %s: […], once",
                       seq->start_mark.line + 1, list_keys[list].name);
    for (yaml_node_item_t *i = seq->data.sequence.items.start; i < seq->data.sequence.items.top; i++) {
        yaml_node_t *map = yaml_document_get_node(doc, *i);
        if (map->type != YAML_MAPPING_NODE)
            return err_set(e, EX_DATAERR, "line %zu: found no mapping, expected {regex: …}",
                           map->start_mark.line + 1);
        a->lists[list] = xgrow(a->lists[list], &capacity, a->counts[list] + 1, sizeof *a->lists[list]);
        struct expression *x = &a->lists[list][a->counts[list]];
        *x = (struct expression){0};
        if (!read_expression(doc, map, list, x, e))
            return false;
        a->counts[list]++;
    }
    return true;
}

static bool read_document(struct agents *a, yaml_document_t *doc, struct err *e)
{
    yaml_node_t *root = yaml_document_get_root_node(doc);
    bool good = root != NULL && root->type == YAML_MAPPING_NODE;
    if (!good)
        return err_set(e, EX_DATAERR, "found no mapping, expected the regexes.yaml of uap-core");
    for (yaml_node_pair_t *p = root->data.mapping.pairs.start; good && p < root->data.mapping.pairs.top;
         p++) {
        for (int list = 0; good && list < AGENTS_LIST_COUNT; list++) {
            if (slice_is(scalar(doc, p->key), list_keys[list].name))
                good = read_list(a, doc, yaml_document_get_node(doc, p->value), (enum agents_list)list, e);
        }
    }
    for (int list = 0; good && list < AGENTS_LIST_COUNT; list++)
        good = a->counts[list] > 0 ||
               err_set(e, EX_DATAERR, "found no %s, expected the regexes.yaml of uap-core",
                       list_keys[list].name);
    return good;
}

static uint64_t hash_file(FILE *file)
{
    char buf[16384];
    XXH3_state_t *state = XXH3_createState();
    XXH3_64bits_reset(state);
    rewind(file);
    for (size_t len; (len = fread(buf, 1, sizeof buf, file)) > 0;)
        XXH3_64bits_update(state, buf, len);
    uint64_t hash = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return hash;
}

struct agents *agents_load(const char *path, struct err *e)
{
    yaml_parser_t parser;
    yaml_document_t doc;
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        err_set(e, EX_NOINPUT, "cannot read %s: %s: install the package uap-core, or set derive.agents", path,
                strerror(errno));
        return NULL;
    }
    struct agents *a = xcalloc(1, sizeof *a);
    bool good = yaml_parser_initialize(&parser) == 1;
    ASSERT(good);
    yaml_parser_set_input_file(&parser, file);
    if (yaml_parser_load(&parser, &doc) == 1) {
        good = read_document(a, &doc, e);
        yaml_document_delete(&doc);
    } else {
        good = err_set(e, EX_DATAERR, "line %zu: %s", parser.problem_mark.line + 1,
                       parser.problem != NULL ? parser.problem : "no YAML");
    }
    yaml_parser_delete(&parser);
    a->hash = hash_file(file);
    fclose(file);
    if (good)
        return a;
    agents_free(a);
    e->code = e->code == EX_CONFIG ? EX_DATAERR : e->code;
    err_prefix(e, "%s", path);
    return NULL;
}

/* ---- finding */

static void know_triples(struct slice agent, uint64_t set[TRIPLE_BITS / 64])
{
    memset(set, 0, TRIPLE_BITS / 8);
    for (size_t i = 0; i + 2 < agent.len; i++) {
        uint16_t at = triple_at(agent.ptr + i);
        set[at / 64] |= (uint64_t)1 << at % 64;
    }
}

static bool may_match(const struct expression *x, const uint64_t set[TRIPLE_BITS / 64])
{
    bool may = true;
    for (size_t i = 0; may && i < x->triple_count; i++)
        may = (set[x->triples[i] / 64] >> x->triples[i] % 64 & 1) != 0;
    return may;
}

static struct slice result(const struct expression *x, const struct pcre_run *run, struct arena *memory)
{
    const char *replacement = x->replacement != NULL ? x->replacement : "$1";
    size_t len = pcre_expand(run, replacement, NULL);
    char *out = arena_add(memory, len);
    pcre_expand(run, replacement, out);
    return slice_trim(slice_of(out, len));
}

struct slice agents_find(const struct agents *a, enum agents_list list, struct pcre_run *run,
                         struct slice agent, struct arena *memory)
{
    uint64_t set[TRIPLE_BITS / 64];
    agent.len = agent.len < AGENT_BYTES_MAX ? agent.len : AGENT_BYTES_MAX;
    know_triples(agent, set);
    for (size_t i = 0; i < a->counts[list]; i++) {
        const struct expression *x = &a->lists[list][i];
        if (!may_match(x, set))
            continue;
        int found = pcre_match(x->regex, run, agent, STEPS);
        if (found < 0)
            return slice_text(AGENT_LIMIT);
        if (found != PCRE_NONE)
            return result(x, run, memory);
    }
    return slice_text(OTHER);
}

bool agents_is_bot(const struct agents *a, struct pcre_run *run, struct slice agent, struct arena *memory)
{
    return slice_is(agents_find(a, AGENTS_DEVICE, run, agent, memory), SPIDER);
}
