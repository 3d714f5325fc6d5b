#include "ingest/derive/route.h"

#include "base/check.h"
#include "base/mem.h"
#include "base/units.h"

#include <stdlib.h>

#define ID           ":id"
#define HEX_MIN      8
#define UUID_BYTES   36
#define STEPS_A_RULE 100 /* at the least */

/* ---- rules */

static bool check_replace(struct slice replace, struct err *e)
{
    for (size_t i = 0; i < replace.len; i++) {
        if (replace.ptr[i] != '$')
            continue;
        if (++i == replace.len || (replace.ptr[i] != '$' && (replace.ptr[i] < '0' || replace.ptr[i] > '9')))
            return err_set(e, EX_CONFIG, "found a $ in replace, expected $0 to $9, or $$ for a dollar");
    }
    return true;
}

bool route_add_rule(struct route_rules *rs, struct slice match, struct slice replace, struct err *e)
{
    if (rs->count == ROUTE_RULES_MAX)
        return err_set(e, EX_CONFIG, "found one more rule, expected at most %d", ROUTE_RULES_MAX);
    if (!check_replace(replace, e))
        return false;
    struct pcre *regex = pcre_new(match, PCRE_FAST, e);
    if (regex == NULL)
        return false;
    rs->list[rs->count++] =
        (struct route_rule){xstrndup(match.ptr, match.len), xstrndup(replace.ptr, replace.len), regex};
    return true;
}

void route_fini(struct route_rules *rs)
{
    for (size_t i = 0; i < rs->count; i++) {
        free(rs->list[i].match);
        free(rs->list[i].replace);
        pcre_free(rs->list[i].regex);
    }
    rs->count = 0;
}

static struct slice replace(const struct route_rule *rule, const struct pcre_run *run, struct slice path,
                            struct arena *memory)
{
    struct slice matched;
    bool has = pcre_group(run, 0, &matched);
    ASSERT(has);
    struct slice before = slice_of(path.ptr, (size_t)(matched.ptr - path.ptr));
    size_t len = pcre_expand(run, rule->replace, NULL), behind = before.len + matched.len;
    char *out = arena_add(memory, len + path.len - matched.len);
    len = 0;
    slice_write(before, out, &len);
    len += pcre_expand(run, rule->replace, out + len);
    slice_write(slice_of(path.ptr + behind, path.len - behind), out, &len);
    return slice_of(out, len);
}

/* ---- segments */

static bool is_uuid(const char *p)
{
    bool is = true;
    for (int i = 0; i < UUID_BYTES && is; i++)
        is = i == 8 || i == 13 || i == 18 || i == 23 ? p[i] == '-' : units_hex_digit(p[i]) >= 0;
    return is;
}

static bool is_id(struct slice segment)
{
    size_t digits = 0, hex = 0;
    if (segment.len == UUID_BYTES && is_uuid(segment.ptr))
        return true;
    for (size_t i = 0; i < segment.len; i++) {
        digits += segment.ptr[i] >= '0' && segment.ptr[i] <= '9';
        hex += units_hex_digit(segment.ptr[i]) >= 0;
    }
    return digits > 0 && (digits == segment.len || (hex == segment.len && hex >= HEX_MIN));
}

/* Replaces segments that are identifiers. Only counts bytes if `out` is NULL. */
static bool replace_ids(struct slice path, char *out, size_t *len)
{
    bool has_any = false;
    const char *p = path.ptr, *end = slice_end(path);
    while (p < end) {
        const char *slash = memchr(p, '/', (size_t)(end - p)), *to = slash != NULL ? slash : end;
        struct slice segment = slice_of(p, (size_t)(to - p));
        bool is = is_id(segment);
        has_any |= is;
        slice_write(is ? slice_text(ID) : segment, out, len);
        slice_write(slice_of("/", slash != NULL), out, len);
        p = slash != NULL ? slash + 1 : end;
    }
    return has_any;
}

struct slice route_make(const struct route_rules *rs, struct pcre_run *run, struct slice path,
                        struct arena *memory)
{
    size_t steps = ROUTE_STEPS_MAX, len = 0;
    if (path.len < ROUTE_STEPS_MAX / ROUTE_STEPS_A_BYTE)
        steps = ROUTE_STEPS + ROUTE_STEPS_A_BYTE * path.len;
    steps = (steps < ROUTE_STEPS_MAX ? steps : ROUTE_STEPS_MAX) / (rs->count > 0 ? rs->count : 1);
    for (size_t i = 0; i < rs->count; i++) {
        uint32_t each = steps > STEPS_A_RULE ? (uint32_t)steps : STEPS_A_RULE;
        int found = pcre_match(rs->list[i].regex, run, path, each);
        if (found < 0)
            return slice_text(ROUTE_LIMIT);
        if (found != PCRE_NONE)
            return replace(&rs->list[i], run, path, memory);
    }
    if (!replace_ids(path, NULL, &len))
        return path;
    char *out = arena_add(memory, len);
    len = 0;
    replace_ids(path, out, &len);
    return slice_of(out, len);
}
