#include "ingest/decode/json.h"

#include "base/check.h"
#include "base/units.h"
#include "ingest/decode/json_paths.h"
#include "ingest/decode/json_scan.h"

#include <stdio.h>

#define HOT  inline __attribute__((always_inline))
#define COLD __attribute__((noinline, cold))

/* Longest name as written that can match a pointer's name once its escapes are undone: \u0061 is one byte. */
#define INDEX_BYTES 24 /* bytes of an element's index as text; reading its word needs 8 more */

/* A text being read. Functions called read_… return the next byte, or NULL with the failure noted. */
struct reading {
    const char *start, *end;
    struct json_found *found;
    unsigned depth_left;
    struct json_shape_name *name, *names_end; /* the cached name expected next; the last never matches */
    enum json_result result;
    const char *at;
};

static COLD const char *fail(struct reading *r, enum json_result result, const char *at)
{
    r->result = result;
    r->at = at;
    return NULL;
}

static HOT const char *skip_space(const struct reading *r, const char *p)
{
    while (p < r->end && (unsigned char)*p <= ' ' && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
        p++;
    return p;
}

COLD const char *json_escape_end(const char *p, const char *end, const char **at)
{
    static const char simple[] = "\"\\/bfnrt";
    int digits = 0;
    if (++p < end && *p == 'u') {
        while (++p < end && digits < 4 && units_hex_digit(*p) >= 0)
            digits++;
        if (digits == 4)
            return p;
    } else if (p < end && memchr(simple, *p, sizeof simple - 1) != NULL) {
        return p + 1;
    }
    *at = p;
    return NULL;
}

static COLD const char *read_odd_string(struct reading *r, const char *p, enum json_type *type)
{
    *type = JSON_ODD_STRING;
    for (;;) {
        p = json_scan_string(r->start, p, r->end);
        if (p < r->end && *p == '"')
            return p;
        if (p == r->end || *p != '\\')
            return fail(r, JSON_BAD, p);
        *type = JSON_ESCAPED_STRING;
        const char *at;
        if ((p = json_escape_end(p, r->end, &at)) == NULL)
            return fail(r, JSON_BAD, at);
    }
}

/* Reads from behind the opening quote; returns the closing quote. */
static HOT const char *read_string(struct reading *r, const char *p, enum json_type *type)
{
    *type = JSON_PLAIN_STRING;
    p = json_scan_plain(r->start, p, r->end);
    return LIKELY(p < r->end && *p == '"') ? p : read_odd_string(r, p, type);
}

static COLD const char *read_digits(struct reading *r, const char *p)
{
    const char *end = r->end;
    if (p == end || (unsigned char)(*p - '0') > 9)
        return fail(r, JSON_BAD, p);
    while (p < end && (unsigned char)(*p - '0') <= 9)
        p++;
    return p;
}

/* Reads ".5e-7" behind the whole digits. */
static COLD const char *read_fraction(struct reading *r, const char *p)
{
    if (*p == '.' && (p = read_digits(r, p + 1)) == NULL)
        return NULL;
    if (p < r->end && (*p | 0x20) == 'e') {
        p++;
        p += p < r->end && (*p == '+' || *p == '-');
        p = read_digits(r, p);
    }
    return p;
}

static HOT const char *read_number(struct reading *r, const char *p)
{
    const char *const end = r->end, *whole = p + (*p == '-');
    for (p = whole; p < end && (unsigned char)(*p - '0') <= 9;)
        p++;
    if (UNLIKELY(p == whole || (*whole == '0' && p - whole > 1)))
        return fail(r, JSON_BAD, p == whole ? p : whole + 1);
    return p < end && (*p == '.' || (*p | 0x20) == 'e') ? read_fraction(r, p) : p;
}

static const char *read_word(struct reading *r, const char *p, const char *word, ptrdiff_t len)
{
    if (r->end - p >= len && memcmp(p, word, (size_t)len) == 0)
        return p + len;
    while (p < r->end && *p == *word) {
        p++;
        word++;
    }
    return fail(r, JSON_BAD, p);
}

/* Finds a name that has escapes, is empty, or is so near the text's end that its word cannot be read. */
static COLD const struct json_node *find_odd_name(const struct json_node *node, struct slice name,
                                                  enum json_type type)
{
    char buf[JSON_ESCAPED_NAME_MAX + sizeof(uint64_t)];
    if (name.len > JSON_ESCAPED_NAME_MAX)
        return &json_nothing;
    size_t len = name.len;
    if (type == JSON_ESCAPED_STRING)
        len = json_unescape(name, buf);
    else
        memcpy(buf, name.ptr, len);
    return json_node_find(node, len > 0 ? json_name_word(buf, len) : 0, slice_of(buf, len));
}

/* Fast path: a name of eight bytes or less in the first slot that its word leads to. */
static HOT const struct json_node *find_name(const struct reading *r, const struct json_node *node,
                                             struct slice name, enum json_type type)
{
    if (node->slots == NULL)
        return &json_nothing;
    if (UNLIKELY(type == JSON_ESCAPED_STRING || name.len == 0 ||
                 r->end - name.ptr < (ptrdiff_t)sizeof(uint64_t)))
        return find_odd_name(node, name, type);
    uint64_t word = json_name_word(name.ptr, name.len);
    const struct json_slot *s = &node->slots[json_name_slot(word)];
    if (s->node != NULL && s->word == word && name.len <= sizeof word && s->node->name.len == name.len)
        return s->node;
    return json_node_find(node, word, name);
}

/* Forgets the values in an earlier member of the same name. */
static COLD void forget_below(struct reading *r, const struct json_node *node)
{
    for (int i = 0; i < JSON_PATH_WORDS; i++)
        r->found->bits[i] &= ~node->below[i];
}

static HOT void put(struct reading *r, const struct json_node *node, enum json_type type, const char *from,
                    const char *to)
{
    struct json_value *v = (struct json_value *)((char *)r->found + node->offset);
    v->text = slice_of(from, (size_t)(to - from));
    v->type = type;
    r->found->bits[node->word] |= node->bit;
}

static const char *read_value(struct reading *r, const char *p, const struct json_node *node);

/* Reads `, "name": ` from behind the last value, or `"name": ` from behind the brace, up to the value. */
static const char *read_name(struct reading *r, const char *p, const struct json_node *object,
                             uintptr_t place, const struct json_node **member)
{
    enum json_type type;
    const char *from = p;
    p = skip_space(r, p);
    if (place == json_shape_place(object, false)) {
        if (p == r->end || *p != ',')
            return fail(r, JSON_BAD, p);
        p = skip_space(r, p + 1);
    }
    if (p == r->end || *p != '"')
        return fail(r, JSON_BAD, p);
    const char *name = p + 1;
    if ((p = read_string(r, name, &type)) == NULL)
        return NULL;
    *member = find_name(r, object, slice_of(name, (size_t)(p - name)), type);
    p = skip_space(r, p + 1);
    if (p == r->end || *p != ':')
        return fail(r, JSON_BAD, p);
    p = skip_space(r, p + 1);
    if (r->name < r->names_end)
        json_shape_keep(r->name++, place, from, p, *member);
    return p;
}

/* Reads a member's value. Fast path: numbers and null; read_object() has one for strings. */
static HOT const char *read_member(struct reading *r, const char *p, const struct json_node *member)
{
    p = skip_space(r, p); /* the cached name may have had less space behind it */
    const char *from = p;
    if (LIKELY(r->end - p >= 4 && member->slots == NULL)) {
        if ((unsigned char)(*p - '0') <= 9 || *p == '-') {
            if (LIKELY((p = read_number(r, p)) != NULL))
                put(r, member, JSON_NUMBER, from, p);
            return p;
        }
        if (memcmp(p, "null", 4) == 0) {
            put(r, member, JSON_NULL, from, p + 4);
            return p + 4;
        }
    }
    return read_value(r, p, member);
}

static const char *read_object(struct reading *r, const char *p, const struct json_node *node)
{
    const char *const end = r->end;
    const uintptr_t later = json_shape_place(node, false);
    struct json_shape_name *n = r->name;
    if (r->depth_left-- == 0)
        return fail(r, JSON_DEEP, p);
    p++;
    for (uintptr_t place = json_shape_place(node, true);; place = later) {
        const struct json_node *member = &json_nothing;
        if (LIKELY(n->place == place && json_shape_is_at(n, p, end))) {
            p += n->len;
            member = n++->member;
        } else {
            const char *token = skip_space(r, p);
            if (token < end && *token == '}') {
                p = token + 1;
                break;
            }
            r->name = n;
            if (UNLIKELY((p = read_name(r, p, node, place, &member)) == NULL))
                return NULL;
            n = r->name;
        }
        if (LIKELY(p < end && *p == '"' && member->slots == NULL)) {
            enum json_type type;
            const char *from = p + 1;
            if (UNLIKELY((p = read_string(r, from, &type)) == NULL))
                return NULL;
            put(r, member, type, from, p++);
            continue;
        }
        r->name = n;
        if (UNLIKELY((p = read_member(r, p, member)) == NULL))
            return NULL;
        n = r->name;
    }
    r->name = n;
    r->depth_left++;
    return p;
}

static COLD const struct json_node *find_element(const struct json_node *node, size_t index)
{
    char text[INDEX_BYTES + sizeof(uint64_t)];
    size_t len = (size_t)snprintf(text, INDEX_BYTES, "%zu", index);
    return json_node_find(node, json_name_word(text, len), slice_of(text, len));
}

static const char *read_array(struct reading *r, const char *p, const struct json_node *node)
{
    if (r->depth_left-- == 0)
        return fail(r, JSON_DEEP, p);
    p = skip_space(r, p + 1);
    bool is_empty = p < r->end && *p == ']', is_looked_for = node->slots != NULL;
    for (size_t i = 0; !is_empty; i++) {
        const struct json_node *element = is_looked_for ? find_element(node, i) : &json_nothing;
        if ((p = read_value(r, p, element)) == NULL)
            return NULL;
        p = skip_space(r, p);
        if (p == r->end || *p != ',')
            break;
        p = skip_space(r, p + 1);
    }
    r->depth_left++;
    return p < r->end && *p == ']' ? p + 1 : fail(r, JSON_BAD, p);
}

static const char *read_value(struct reading *r, const char *p, const struct json_node *node)
{
    const char *from = p;
    enum json_type type = JSON_NUMBER;
    if (p == r->end)
        return fail(r, JSON_BAD, p);
    if (node->slots != NULL && r->name != r->found->shape.names) /* the whole text has no earlier member */
        forget_below(r, node);
    switch (*p) {
    case '"':
        if ((p = read_string(r, p + 1, &type)) == NULL)
            return NULL;
        put(r, node, type, from + 1, p);
        return p + 1;
    case '{':
        type = JSON_OBJECT;
        p = read_object(r, p, node);
        break;
    case '[':
        type = JSON_ARRAY;
        p = read_array(r, p, node);
        break;
    case 't':
        type = JSON_TRUE;
        p = read_word(r, p, "true", 4);
        break;
    case 'f':
        type = JSON_FALSE;
        p = read_word(r, p, "false", 5);
        break;
    case 'n':
        type = JSON_NULL;
        p = read_word(r, p, "null", 4);
        break;
    default:
        p = read_number(r, p);
        break;
    }
    if (p != NULL)
        put(r, node, type, from, p);
    return p;
}

enum json_result json_read(const struct json_paths *paths, struct slice text, struct json_found *found,
                           const char **at)
{
    struct reading r = {
        .start = text.ptr, .end = slice_end(text), .found = found, .depth_left = paths->depth_max};
    r.name = found->shape.names;
    r.names_end = &found->shape.names[JSON_SHAPE_MAX - 1];
    memset(found->bits, 0, sizeof found->bits);
    const char *p = read_value(&r, text.ptr, &paths->root);
    *at = p != NULL ? p : r.at;
    return r.result;
}

static unsigned read_hex4(const char *p)
{
    unsigned v = 0;
    for (int i = 0; i < 4; i++)
        v = v << 4 | (unsigned)units_hex_digit(p[i]);
    return v;
}

static bool is_between(unsigned v, unsigned low, unsigned high)
{
    return v >= low && v <= high;
}

static char *put_utf8(char *out, unsigned code)
{
    if (code < 0x80) {
        *out++ = (char)code;
        return out;
    }
    if (code < 0x800) {
        *out++ = (char)(0xC0 | code >> 6);
    } else {
        if (code < 0x10000) {
            *out++ = (char)(0xE0 | code >> 12);
        } else {
            *out++ = (char)(0xF0 | code >> 18);
            *out++ = (char)(0x80 | (code >> 12 & 0x3F));
        }
        *out++ = (char)(0x80 | (code >> 6 & 0x3F));
    }
    *out++ = (char)(0x80 | (code & 0x3F));
    return out;
}

/* Takes "XXXX" of "\uXXXX", and the second half of a surrogate pair; *p moves behind them. */
static unsigned take_code(const char **p, const char *end)
{
    unsigned code = read_hex4(*p);
    *p += 4;
    if (is_between(code, 0xD800, 0xDBFF) && end - *p >= 6 && memcmp(*p, "\\u", 2) == 0) {
        unsigned low = read_hex4(*p + 2);
        if (is_between(low, 0xDC00, 0xDFFF)) {
            *p += 6;
            return 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        }
    }
    return is_between(code, 0xD800, 0xDFFF) ? 0xFFFD : code;
}

size_t json_unescape(struct slice text, char *out)
{
    char *start = out;
    for (const char *p = text.ptr, *end = slice_end(text); p < end;) {
        const char *backslash = memchr(p, '\\', (size_t)(end - p));
        size_t plain = (size_t)((backslash != NULL ? backslash : end) - p);
        memcpy(out, p, plain);
        out += plain;
        if (backslash == NULL)
            break;
        char c = backslash[1];
        p = backslash + 2;
        if (c == 'u')
            out = put_utf8(out, take_code(&p, end));
        else
            *out++ = (char)(c == 'b'   ? '\b'
                            : c == 'f' ? '\f'
                            : c == 'n' ? '\n'
                            : c == 'r' ? '\r'
                            : c == 't' ? '\t'
                                       : c);
    }
    return (size_t)(out - start);
}
