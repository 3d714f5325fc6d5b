#include "aggregate/dimension.h"

#include "base/check.h"
#include "base/units.h"
#include "base/utf8.h"

#define XXH_INLINE_ALL
#include <stdint.h>
#include <xxhash.h>

#define CUT_MARK_BYTES 17 /* "~" and 16 hex digits */

static const char hex_digits[] = "0123456789ABCDEF";

/* Undoes the escape at `p` (a backslash): returns its byte, and in *taken the length of the escape. An
 * unknown escape is just a backslash. */
static unsigned char unescape(const char *p, const char *end, size_t *taken)
{
    *taken = 2;
    if (end - p < 2) {
        *taken = 1;
        return '\\';
    }
    switch (p[1]) {
    case 'n':
        return '\n';
    case 't':
        return '\t';
    case 'r':
        return '\r';
    case 'b':
        return '\b';
    case 'v':
        return '\v';
    case '"':
    case '\\':
        return (unsigned char)p[1];
    case 'x':
        if (end - p >= 4 && units_hex_digit(p[2]) >= 0 && units_hex_digit(p[3]) >= 0) {
            *taken = 4;
            return (unsigned char)(units_hex_digit(p[2]) << 4 | units_hex_digit(p[3]));
        }
        break;
    default:
        break;
    }
    *taken = 1;
    return '\\';
}

/* The output of settling: bytes up to a limit, while all bytes are hashed for the cut mark. */
struct sink {
    char *out;
    size_t len, limit; /* limit: bytes that leave room for a cut mark */
    size_t max;
    size_t fitting; /* length of `out` up to the last whole character within `limit` */
    bool cut;
    XXH3_state_t *hash;
};

static void sink_add(struct sink *s, const char *bytes, size_t len)
{
    XXH3_64bits_update(s->hash, bytes, len);
    if (s->cut || s->len + len > s->max) {
        s->cut = true;
        return;
    }
    memcpy(s->out + s->len, bytes, len);
    s->len += len;
    if (s->len <= s->limit)
        s->fitting = s->len;
}

static void sink_add_escaped(struct sink *s, unsigned char byte)
{
    char escaped[3] = {'%', hex_digits[byte >> 4], hex_digits[byte & 15]};
    sink_add(s, escaped, 3);
}

static size_t sink_finish(struct sink *s)
{
    if (!s->cut && dimension_is_other(slice_of(s->out, s->len))) {
        s->len = 0;
        sink_add_escaped(s, (unsigned char)DIMENSION_OTHER[0]);
        sink_add(s, &DIMENSION_OTHER[1], DIMENSION_OTHER_BYTES - 1);
    }
    if (!s->cut)
        return s->len;
    uint64_t hash = XXH3_64bits_digest(s->hash);
    char *p = s->out + s->fitting;
    *p++ = '~';
    for (int shift = 60; shift >= 0; shift -= 4)
        *p++ = hex_digits[(hash >> shift) & 15];
    return s->fitting + CUT_MARK_BYTES;
}

/* Takes one character. Escapes are undone first, so an escape can be part of a UTF-8 sequence. */
static const char *settle_one(struct sink *s, const char *p, const char *end, bool escaped)
{
    unsigned char decoded[4];
    size_t count = 0, first_taken = 0, total = 0;
    while (count < 4 && p + total < end) {
        size_t taken = 1;
        bool is_escape = escaped && p[total] == '\\';
        decoded[count++] = is_escape ? unescape(p + total, end, &taken) : (unsigned char)p[total];
        total += taken;
        if (count == 1)
            first_taken = taken;
        if (decoded[0] < 0xC2)
            break;
        if (utf8_len(decoded, decoded + count) == count)
            break;
    }
    size_t n = utf8_len(decoded, decoded + count);
    if (n == count && n > 1) {
        sink_add(s, (const char *)decoded, n);
        return p + total;
    }
    if (decoded[0] < 0x20 || decoded[0] == 0x7F || decoded[0] >= 0x80)
        sink_add_escaped(s, decoded[0]);
    else
        sink_add(s, (const char *)decoded, 1);
    return p + first_taken;
}

size_t dimension_settle(struct slice raw, bool escaped, size_t max_bytes, char *out)
{
    ASSERT(max_bytes >= DIMENSION_BYTES_MIN);
    XXH3_state_t hash;
    XXH3_64bits_reset(&hash);
    struct sink sink = {.out = out, .max = max_bytes, .limit = max_bytes - CUT_MARK_BYTES, .hash = &hash};
    const char *p = raw.ptr, *end = slice_end(raw);
    while (p < end)
        p = settle_one(&sink, p, end, escaped);
    return sink_finish(&sink);
}

static struct slice path_segments(struct slice path, int segments)
{
    size_t n = 0;
    if (path.len == 0 || path.ptr[0] != '/')
        return path;
    for (; n < path.len; n++) {
        if (path.ptr[n] == '/' && segments-- == 0)
            break;
    }
    return slice_of(path.ptr, n);
}

/* The length up to the first '/', '?' or '#'. */
static size_t authority_len(const char *p, const char *end)
{
    size_t len = 0;
    while (p + len < end && p[len] != '/' && p[len] != '?' && p[len] != '#')
        len++;
    return len;
}

/* "http://user@Example.com:8080/x" → "Example.com"; without a scheme, up to the first '/'. */
static struct slice referrer_host(struct slice referrer)
{
    const char *p = referrer.ptr, *end = p + referrer.len;
    size_t len = authority_len(p, end);
    if (len > 0 && p[len - 1] == ':' && end - p - (ptrdiff_t)len >= 2 && memcmp(p + len, "//", 2) == 0) {
        p += len + 2;
        len = authority_len(p, end);
    }
    const char *at = memrchr(p, '@', len);
    if (at != NULL) {
        len -= (size_t)(at + 1 - p);
        p = at + 1;
    }
    /* an IPv6 address has colons of its own, in brackets */
    const char *bracket = len > 0 && p[0] == '[' ? memchr(p, ']', len) : NULL;
    size_t before = bracket != NULL ? (size_t)(bracket - p) : 0;
    const char *colon = memchr(p + before, ':', len - before);
    return slice_of(p, colon != NULL ? (size_t)(colon - p) : len);
}

bool dimension_parse(struct dimension *d, struct slice text)
{
    static const char segments[] = "path:";
    struct dimension parsed = {.kind = DIMENSION_FIELD};
    if (text.len >= sizeof parsed.name)
        return false;
    if (slice_is(text, "status_class")) {
        parsed.kind = DIMENSION_STATUS_CLASS;
        parsed.field = FIELD_STATUS;
    } else if (slice_is(text, "referrer_host")) {
        parsed.kind = DIMENSION_REFERRER_HOST;
        parsed.field = FIELD_REFERRER;
    } else if (text.len == sizeof segments && memcmp(text.ptr, segments, sizeof segments - 1) == 0) {
        parsed.kind = DIMENSION_PATH_SEGMENTS;
        parsed.field = FIELD_PATH;
        parsed.segments = text.ptr[text.len - 1] - '0';
        if (parsed.segments < 1 || parsed.segments > REPORT_SEGMENTS_MAX)
            return false;
    } else if (!field_parse(text, &parsed.field) || parsed.field == FIELD_BYTES ||
               parsed.field == FIELD_VALUE) {
        return false;
    }
    memcpy(parsed.name, text.ptr, text.len);
    *d = parsed;
    return true;
}

static const struct slice absent = {"-", 1};

/* The raw text of one dimension. */
static struct slice dimension_raw(const struct dimension *d, const struct event *ev)
{
    static const char *const classes[10] = {"0xx", "1xx", "2xx", "3xx", "4xx",
                                            "5xx", "6xx", "7xx", "8xx", "9xx"};
    if (!event_has(ev, d->field))
        return absent;
    struct slice raw = ev->field[d->field];
    switch (d->kind) {
    case DIMENSION_FIELD:
        return raw;
    case DIMENSION_PATH_SEGMENTS:
        return path_segments(raw, d->segments);
    case DIMENSION_STATUS_CLASS:
        return slice_of(classes[(ev->number[FIELD_STATUS] / 100) % 10], 3);
    default:
        ASSERT(d->kind == DIMENSION_REFERRER_HOST);
        return referrer_host(raw);
    }
}

/* Is the raw text of a dimension settled as it is? */
static inline bool is_settled(const struct dimension *d, const struct event *ev, struct slice raw,
                              size_t max_bytes)
{
    bool odd = event_has(ev, d->field) && event_is_odd(ev, d->field);
    return LIKELY(!odd && raw.len <= max_bytes && !dimension_is_other(raw));
}

static size_t put_dimension(const struct dimension *d, const struct event *ev, size_t max_bytes, char *out)
{
    struct slice raw = dimension_raw(d, ev);
    if (!is_settled(d, ev, raw, max_bytes)) {
        bool odd = event_has(ev, d->field) && event_is_odd(ev, d->field);
        return dimension_settle(raw, odd && !((ev->literal >> d->field) & 1), max_bytes, out);
    }
    if (raw.len > 0)
        memcpy(out, raw.ptr, raw.len);
    return raw.len;
}

struct slice dimension_key(const struct dimension *dimensions, size_t count, const struct event *ev,
                           size_t max_bytes, char *scratch)
{
    if (count == 1) {
        struct slice raw = dimension_raw(dimensions, ev);
        if (is_settled(dimensions, ev, raw, max_bytes))
            return raw;
    }
    size_t len = 0;
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            scratch[len++] = DIMENSION_SEPARATOR;
        len += put_dimension(&dimensions[i], ev, max_bytes, scratch + len);
    }
    return slice_of(scratch, len);
}

struct slice dimension_next(struct slice *key)
{
    const char *end = key->len > 0 ? memchr(key->ptr, DIMENSION_SEPARATOR, key->len) : NULL;
    size_t len = end != NULL ? (size_t)(end - key->ptr) : key->len;
    struct slice first = slice_of(key->ptr, len);
    size_t taken = end != NULL ? len + 1 : len;
    *key = slice_of(key->ptr + taken, key->len - taken);
    return first;
}
