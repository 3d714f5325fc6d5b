#include "store/builds.h"

#include "base/civil.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[BUILD_COUNT] = {"geo", "asn", "agents"};

void builds_fini(struct build_stretches *all)
{
    free(all->list);
    *all = (struct build_stretches){0};
}

bool build_read(const char *entry, int64_t value, struct build_stretch *s)
{
    uint64_t hash;
    int end = 0; /* behind the last number */
    *s = (struct build_stretch){.to = value};
    for (int k = 0; k < BUILD_COUNT; k++) {
        size_t len = strlen(names[k]);
        if (strncmp(entry, names[k], len) != 0)
            continue;
        s->kind = (enum build_kind)k;
        if (k != BUILD_AGENTS)
            return sscanf(entry + len, ".%" SCNd64 ".%" SCNd64 "%n", &s->from, &s->build, &end) == 2 &&
                   entry[len + (size_t)end] == '\0';
        bool good = sscanf(entry + len, ".%" SCNd64 ".%" SCNx64 "%n", &s->from, &hash, &end) == 2 &&
                    entry[len + (size_t)end] == '\0';
        s->build = good ? (int64_t)hash : 0;
        return good;
    }
    return false;
}

const char *build_entry(const struct build_stretch *s, char buf[STORE_ENTRY_BYTES])
{
    if (s->kind == BUILD_AGENTS)
        snprintf(buf, STORE_ENTRY_BYTES, "%s.%" PRId64 ".%016" PRIx64, names[s->kind], s->from,
                 (uint64_t)s->build);
    else
        snprintf(buf, STORE_ENTRY_BYTES, "%s.%" PRId64 ".%" PRId64, names[s->kind], s->from, s->build);
    return buf;
}

const char *build_name(enum build_kind kind)
{
    return names[kind];
}

void build_print(const struct build_stretch *s, struct text *out)
{
    char at[CIVIL_ISO_BYTES];
    if (s->kind == BUILD_AGENTS)
        text_printf(out, "%016" PRIx64, (uint64_t)s->build);
    else
        text_puts(out, civil_iso(s->build * SECOND_MS, at));
}

void builds_put(struct build_stretches *all, const struct build_stretch *s)
{
    size_t i = 0;
    while (i < all->count &&
           (all->list[i].kind != s->kind || all->list[i].from != s->from || all->list[i].build != s->build))
        i++;
    if (i == all->count) {
        all->list = xgrow(all->list, &all->capacity, i + 1, sizeof *all->list);
        all->count++;
    }
    all->list[i] = *s;
}

bool builds_after(const struct build_stretches *all, const struct range *r, enum build_kind kind,
                  struct build_stretch *s)
{
    *s = (struct build_stretch){kind, r->builds.of[kind], r->from, r->to};
    for (size_t i = 0; i < all->count; i++) {
        const struct build_stretch *old = &all->list[i];
        if (old->kind == kind && old->build == s->build && old->to == r->from)
            s->from = old->from;
    }
    return s->build != 0 && r->from < r->to;
}

void builds_cut(struct build_stretches *all, int64_t to)
{
    size_t kept = 0;
    for (size_t i = 0; i < all->count; i++) {
        struct build_stretch s = all->list[i];
        s.to = s.to < to ? s.to : to;
        if (s.from < s.to)
            all->list[kept++] = s;
    }
    all->count = kept;
}
