#include "ingest/decode/logfmt.h"

#include "base/check.h"
#include "base/mem.h"
#include "base/units.h"
#include "ingest/decode/json.h"

#include <stdlib.h>

#define SLOTS_LOG2 8 /* more slots than keys, so that most keys are in the first slot that a lookup tries */
#define SLOTS      (1u << SLOTS_LOG2)

struct slot {
    struct slice key; /* ptr NULL: empty */
    unsigned part;
};

struct logfmt {
    struct slot slots[SLOTS];
    size_t count;
};

struct logfmt *logfmt_new(void)
{
    return xcalloc(1, sizeof(struct logfmt));
}

void logfmt_free(struct logfmt *lf)
{
    free(lf);
}

/* By length, first, middle and last byte: enough to tell the names of fields apart. */
static unsigned hash_key(struct slice key)
{
    const unsigned char *p = (const unsigned char *)key.ptr;
    uint32_t bytes =
        (uint32_t)p[0] << 16 | (uint32_t)p[key.len / 2] << 8 | p[key.len - 1] | (uint32_t)key.len << 24;
    return bytes * UINT32_C(0x9E3779B1) >> (32 - SLOTS_LOG2);
}

/* The key's slot, or the empty slot in which it would be. */
static const struct slot *find_slot(const struct logfmt *lf, struct slice key)
{
    unsigned i = hash_key(key);
    while (lf->slots[i].key.ptr != NULL && !slice_equal(lf->slots[i].key, key))
        i = (i + 1) % SLOTS;
    return &lf->slots[i];
}

unsigned logfmt_add(struct logfmt *lf, struct slice key, unsigned slot)
{
    struct slot *s = &lf->slots[find_slot(lf, key) - lf->slots];
    if (s->key.ptr != NULL)
        return s->part;
    ASSERT(key.len > 0 && slot < PARTS_SLOTS && lf->count < PARTS_SLOTS);
    lf->count++;
    *s = (struct slot){key, slot};
    return slot;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool is_key(char c)
{
    return (unsigned char)c > ' ' && c != '=' && c != '"' && c != 0x7F;
}

/* The byte behind the escape at `p`: one of JSON, or \xff. NULL: it is none. */
static const char *skip_escape(const char *p, const char *end)
{
    const char *at;
    if (end - p < 2 || p[1] != 'x')
        return json_escape_end(p, end, &at);
    return end - p >= 4 && units_hex_digit(p[2]) >= 0 && units_hex_digit(p[3]) >= 0 ? p + 4 : NULL;
}

/* A line being read. Functions called take_… return the next byte, or NULL with *reason and *at written. */
struct reading {
    const char *end;
    enum reject_reason *reason;
    const char **at;
};

static const char *refuse(const struct reading *r, enum reject_reason reason, const char *at)
{
    *r->reason = reason;
    *r->at = at;
    return NULL;
}

/* Takes the value behind the quote `open`. */
static const char *take_quoted(const struct reading *r, const char *open, struct slice *text, bool *escaped)
{
    const char *p = open + 1;
    while (p < r->end && *p != '"') {
        const char *from = p;
        p = *from == '\\' ? skip_escape(from, r->end) : from + 1;
        if (p == NULL)
            return refuse(r, REJECT_LOGFMT, from);
        *escaped |= *from == '\\';
    }
    if (p == r->end)
        return refuse(r, REJECT_UNTERMINATED, open);
    *text = slice_of(open + 1, (size_t)(p - open) - 1);
    return ++p == r->end || is_blank(*p) ? p : refuse(r, REJECT_LOGFMT, p);
}

static const char *take_value(const struct reading *r, const char *p, struct slice *text, bool *escaped)
{
    const char *from = p;
    if (p < r->end && *p == '"')
        return take_quoted(r, p, text, escaped);
    while (p < r->end && (is_key(*p) || *p == '='))
        p++;
    *text = slice_of(from, (size_t)(p - from));
    return p == r->end || is_blank(*p) ? p : refuse(r, REJECT_LOGFMT, p);
}

bool logfmt_read(const struct logfmt *lf, struct slice line, struct parts *ps, enum reject_reason *reason,
                 const char **at)
{
    const struct reading r = {slice_end(line), reason, at};
    const char *p = line.ptr;
    bool has_value = false;
    for (;;) {
        while (p < r.end && is_blank(*p))
            p++;
        if (p == r.end)
            return has_value || refuse(&r, REJECT_LOGFMT, line.ptr) != NULL;
        const char *from = p;
        while (p < r.end && is_key(*p))
            p++;
        struct slice key = slice_of(from, (size_t)(p - from)), text = slice_of(p, 0);
        bool escaped = false;
        if (key.len == 0 || (p < r.end && *p != '=' && !is_blank(*p)))
            return refuse(&r, REJECT_LOGFMT, p) != NULL;
        if (p < r.end && *p == '=') {
            has_value = true;
            p = take_value(&r, p + 1, &text, &escaped);
            if (p == NULL)
                return false;
        }
        const struct slot *slot = find_slot(lf, key);
        if (slot->key.ptr != NULL)
            parts_put(ps, slot->part, text, escaped);
    }
}

size_t logfmt_unescape(struct slice text, char *out)
{
    const char *from = text.ptr, *end = slice_end(text), *p = from;
    char *start = out;
    while (p < end && (p = memchr(p, '\\', (size_t)(end - p))) != NULL) {
        if (p[1] != 'x') {
            p += 2;
            continue;
        }
        out += json_unescape(slice_of(from, (size_t)(p - from)), out);
        *out++ = (char)(units_hex_digit(p[2]) << 4 | units_hex_digit(p[3]));
        from = p += 4;
    }
    out += json_unescape(slice_of(from, (size_t)(end - from)), out);
    return (size_t)(out - start);
}
