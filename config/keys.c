#include "config/keys.h"

#include "aggregate/dimension.h"

#define KIB ((int64_t)1 << 10)
#define MIB ((int64_t)1 << 20)
#define GIB ((int64_t)1 << 30)
#define YES true
#define NO  false

#define MEMBER_BYTES(type, member) sizeof(((struct type *)NULL)->member)

#define SECTION(name, help)
#define KEY(owner, section, name, member, type, unit, min, max, standard, reload, help) \
    {KEY_OF_##owner,                                                                    \
     #section,                                                                          \
     #name,                                                                             \
     KEY_##type,                                                                        \
     offsetof(struct owner, member),                                                    \
     MEMBER_BYTES(owner, member),                                                       \
     unit,                                                                              \
     min,                                                                               \
     max,                                                                               \
     standard,                                                                          \
     reload,                                                                            \
     help},
const struct key keys_table[] = {
#include "config/keys.def"
    {.name = NULL}};
#undef SECTION
#undef KEY

#define KEY(owner, section, name, member, type, unit, min, max, standard, reload, help)
#define SECTION(name, help) {#name, help},
const struct key_section keys_sections[] = {
#include "config/keys.def"
    {NULL, NULL}};
#undef SECTION

#define SECTION(name, help) #name,
const char *const keys_section_names[] = {
#include "config/keys.def"
    NULL};
#undef SECTION
#undef KEY

const struct key *keys_find(const char *section, struct slice name)
{
    for (const struct key *k = keys_table; k->name != NULL; k++) {
        if (strcmp(k->section, section) == 0 && slice_is(name, k->name))
            return k;
    }
    return NULL;
}

bool keys_is_section(struct slice name)
{
    for (const struct key_section *section = keys_sections; section->name != NULL; section++) {
        if (slice_is(name, section->name))
            return true;
    }
    return false;
}

bool keys_is_list(const struct key *k)
{
    return keys_types[k->type].parse == NULL;
}

bool keys_may_be_file(const struct key *k)
{
    return k->type == KEY_URL || keys_is_secret(k);
}

bool keys_is_secret(const struct key *k)
{
    return k->type == KEY_SECRET || k->type == KEY_PASSWORD;
}

bool keys_is_text(const struct key *k)
{
    return strcmp(keys_types[k->type].name, "text") == 0;
}

bool keys_belongs(const struct key *k, const struct config_source *source)
{
    const struct decode *d = &source->decode;
    if (k->type == KEY_PATHS || k->type == KEY_PATH)
        return source->type == SOURCE_FILE;
    if (k->type == KEY_TOPIC || k->type == KEY_START)
        return source->type == SOURCE_KAFKA;
    if (strncmp(k->name, "raw_", 4) == 0)
        return source->raw.kind != RAW_OFF;
    return k->type != KEY_METRIC || (d->step_count > 0 && d->steps[d->step_count - 1].kind == STEP_METRIC);
}

void keys_set_defaults(enum key_owner owner, void *base)
{
    struct err e = {0};
    for (const struct key *k = keys_table; k->name != NULL; k++) {
        if (k->owner != owner || keys_is_list(k) || k->standard == NULL)
            continue;
        bool good = keys_parse(k, slice_text(k->standard), (struct slice){0}, base, &e);
        ASSERT(good);
    }
}
