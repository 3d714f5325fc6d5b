#include "ingest/file/pattern.h"

#include "base/mem.h"
#include "base/suggest.h"

#include <stdlib.h>

/* A pattern that is being parsed. */
struct parser {
    struct pattern *pattern;
    const char *p, *end;
    struct err *e;
};

static bool refuse(struct parser *ps, const char *expected)
{
    char quote[SUGGEST_QUOTE_BYTES];
    return err_set(ps->e, EX_CONFIG, "found %s, expected %s",
                   suggest_quote(slice_text(ps->pattern->text), quote), expected);
}

static bool is_run(enum pattern_kind kind)
{
    return kind == PATTERN_STAR || kind == PATTERN_CAPTURE;
}

/* The piece before the next one, in the same component; NULL: none. */
static const struct pattern_piece *last_piece(const struct pattern *p)
{
    size_t from = p->parts[p->part_count].from;
    return p->piece_count > from ? &p->pieces[p->piece_count - 1] : NULL;
}

static struct pattern_piece *add_piece(struct pattern *p, enum pattern_kind kind)
{
    struct pattern_piece *piece = &p->pieces[p->piece_count++];
    *piece = (struct pattern_piece){.kind = kind};
    p->parts[p->part_count].is_plain &= kind == PATTERN_BYTE;
    return piece;
}

static bool take_run(struct parser *ps, enum pattern_kind kind)
{
    const struct pattern_piece *last = last_piece(ps->pattern);
    if (last != NULL && last->kind == PATTERN_STAR && kind == PATTERN_STAR)
        return refuse(ps, "a single *, since there is no **");
    if (last != NULL && is_run(last->kind))
        return refuse(ps, "a text between a capture and another one, or *");
    add_piece(ps->pattern, kind);
    return true;
}

static bool take_capture(struct parser *ps)
{
    struct pattern *p = ps->pattern;
    const char *close = memchr(ps->p, '}', (size_t)(ps->end - ps->p));
    struct slice name = close != NULL ? slice_of(ps->p, (size_t)(close - ps->p)) : (struct slice){0};
    if (!slice_is_name(name, FIELD_NAME_BYTES))
        return refuse(ps, "the name of a field in braces, such as {vhost} (\\{ stands for a brace)");
    for (size_t i = 0; i < p->capture_count; i++) {
        if (slice_is(name, p->captures[i]))
            return refuse(ps, "each capture once");
    }
    if (p->capture_count == PATTERN_CAPTURES_MAX)
        return refuse(ps, "at most 8 captures");
    if (!take_run(ps, PATTERN_CAPTURE))
        return false;
    p->pieces[p->piece_count - 1].capture = p->capture_count;
    memcpy(p->captures[p->capture_count++], name.ptr, name.len);
    ps->p = close + 1;
    return true;
}

/* Takes one byte of a set, which a backslash may make stand for itself. False: the set does not end. */
static bool take_set_byte(struct parser *ps, unsigned char *byte)
{
    if (ps->p < ps->end && *ps->p == '\\')
        ps->p++;
    if (ps->p == ps->end || *ps->p == '/')
        return false;
    *byte = (unsigned char)*ps->p++;
    return true;
}

static bool take_set(struct parser *ps)
{
    struct pattern_piece *piece = add_piece(ps->pattern, PATTERN_SET);
    bool is_inverted = ps->p < ps->end && (*ps->p == '!' || *ps->p == '^');
    bool good = true, is_first = true;
    ps->p += is_inverted;
    for (; good && ps->p < ps->end && (is_first || *ps->p != ']'); is_first = false) {
        unsigned char from, to;
        good = take_set_byte(ps, &from);
        to = from;
        if (good && ps->end - ps->p >= 2 && ps->p[0] == '-' && ps->p[1] != ']') {
            ps->p++;
            good = take_set_byte(ps, &to);
        }
        for (unsigned byte = from; good && byte <= to; byte++)
            piece->set[byte / 64] |= UINT64_C(1) << byte % 64;
    }
    if (!good || ps->p == ps->end)
        return refuse(ps, "a ] at the end of [ (\\[ stands for a bracket)");
    ps->p++;
    for (size_t i = 0; is_inverted && i < COUNT_OF(piece->set); i++)
        piece->set[i] = ~piece->set[i];
    return true;
}

/* Ends the component before a slash, or at the end. Empty and `.` components are left out. */
static void end_part(struct pattern *p)
{
    struct pattern_part *part = &p->parts[p->part_count];
    part->to = p->piece_count;
    bool is_dot = part->is_plain && part->to - part->from == 1 && p->pieces[part->from].byte == '.';
    if (is_dot)
        p->piece_count = part->from;
    else if (part->to > part->from)
        p->part_count++;
    p->parts[p->part_count] = (struct pattern_part){.from = p->piece_count, .is_plain = true};
}

static bool take_piece(struct parser *ps)
{
    char byte = *ps->p++;
    switch (byte) {
    case '/':
        end_part(ps->pattern);
        return true;
    case '*':
        return take_run(ps, PATTERN_STAR);
    case '?':
        add_piece(ps->pattern, PATTERN_ANY);
        return true;
    case '[':
        return take_set(ps);
    case '{':
        return take_capture(ps);
    case '\\':
        if (ps->p == ps->end || *ps->p == '/')
            return refuse(ps, "a byte behind the backslash, for which it stands");
        byte = *ps->p++;
        break;
    default:
        break;
    }
    add_piece(ps->pattern, PATTERN_BYTE)->byte = (unsigned char)byte;
    return true;
}

static bool is_plain(const struct pattern *p)
{
    bool plain = true;
    for (size_t i = 0; i < p->part_count && plain; i++)
        plain = p->parts[i].is_plain;
    return plain;
}

/* The text without its backslashes. */
static char *unescape(const char *text)
{
    char *plain = xstrdup(text), *to = plain;
    for (const char *from = text; *from != '\0'; from++) {
        from += *from == '\\';
        *to++ = *from;
    }
    *to = '\0';
    return plain;
}

static bool parse(struct parser *ps, struct slice text)
{
    struct pattern *p = ps->pattern;
    if (text.len == 0)
        return refuse(ps, "a path");
    while (ps->p < ps->end) {
        if (!take_piece(ps))
            return false;
    }
    end_part(p);
    if (p->part_count == 0 || p->text[text.len - 1] == '/')
        return refuse(ps, "the path of a file, not of a folder");
    if (is_plain(p))
        p->plain = unescape(p->text);
    return true;
}

struct pattern *pattern_new(struct slice text, struct err *e)
{
    struct pattern *p = xcalloc(1, sizeof *p);
    struct parser ps = {.pattern = p, .e = e};
    ASSERT(memchr(text.len > 0 ? text.ptr : "", '\0', text.len) == NULL);
    p->text = xstrndup(text.len > 0 ? text.ptr : "", text.len);
    p->is_absolute = p->text[0] == '/';
    p->pieces = xcalloc(text.len + 1, sizeof *p->pieces);
    p->parts = xcalloc(text.len + 2, sizeof *p->parts);
    p->parts[0].is_plain = true;
    ps.p = p->text;
    ps.end = p->text + text.len;
    if (parse(&ps, text))
        return p;
    pattern_free(p);
    return NULL;
}

void pattern_free(struct pattern *p)
{
    if (p == NULL)
        return;
    free(p->text);
    free(p->plain);
    free(p->pieces);
    free(p->parts);
    free(p);
}

static bool fits(const struct pattern_piece *piece, char c)
{
    unsigned char byte = (unsigned char)c;
    return piece->kind == PATTERN_ANY || (piece->kind == PATTERN_BYTE && piece->byte == byte) ||
           (piece->kind == PATTERN_SET && (piece->set[byte / 64] >> byte % 64 & 1) != 0);
}

/* Matches a name. A run ends at the first place at which the pieces up to the next run match: if any place is
 * good for the rest of the name, the first one is. So only the last run is ever made longer. */
static bool match_name(const struct pattern *p, const struct pattern_part *part, struct slice name,
                       struct slice captures[PATTERN_CAPTURES_MAX])
{
    const struct pattern_piece *piece = p->pieces + part->from, *end = p->pieces + part->to, *run = NULL;
    size_t at = 0, run_from = 0, run_to = 0;
    if (name.len > 0 && name.ptr[0] == '.' && piece->kind != PATTERN_BYTE)
        return false;
    for (;;) {
        if (piece == end && at == name.len)
            return true;
        if (piece < end && is_run(piece->kind)) {
            run = piece++;
            run_from = at;
            run_to = at + (run->kind == PATTERN_CAPTURE);
        } else if (piece < end && at < name.len && fits(piece, name.ptr[at])) {
            piece++;
            at++;
            continue;
        } else {
            if (run == NULL)
                return false;
            piece = run + 1;
            run_to++;
        }
        if (run_to > name.len)
            return false;
        at = run_to;
        if (run->kind == PATTERN_CAPTURE)
            captures[run->capture] = slice_of(name.ptr + run_from, run_to - run_from);
    }
}

bool pattern_matches_name(const struct pattern *p, const struct pattern_part *part, struct slice name)
{
    struct slice captures[PATTERN_CAPTURES_MAX];
    return match_name(p, part, name, captures);
}

/* Takes the next component that is neither empty nor `.`; false: there is none. */
static bool take_name(struct slice *path, struct slice *name)
{
    const char *p = path->ptr, *end = slice_end(*path);
    do {
        while (p < end && *p == '/')
            p++;
        const char *slash = p < end ? memchr(p, '/', (size_t)(end - p)) : NULL;
        *name = slice_of(p, (size_t)((slash != NULL ? slash : end) - p));
        p += name->len;
    } while (slice_is(*name, "."));
    *path = slice_of(p, (size_t)(end - p));
    return name->len > 0;
}

bool pattern_match_rest(const struct pattern *p, size_t part, struct slice path,
                        struct slice captures[PATTERN_CAPTURES_MAX])
{
    struct slice name;
    if (path.len == 0 || path.ptr[path.len - 1] == '/')
        return false;
    while (take_name(&path, &name)) {
        if (part == p->part_count || !match_name(p, &p->parts[part], name, captures))
            return false;
        part++;
    }
    return part == p->part_count;
}

bool pattern_match(const struct pattern *p, struct slice path, struct slice captures[PATTERN_CAPTURES_MAX])
{
    bool is_absolute = path.len > 0 && path.ptr[0] == '/';
    return is_absolute == p->is_absolute && pattern_match_rest(p, 0, path, captures);
}

size_t pattern_base(const struct pattern *p, struct text *folder)
{
    size_t part = 0;
    text_puts(folder, p->is_absolute ? "/" : ".");
    for (; part + 1 < p->part_count && p->parts[part].is_plain; part++) {
        text_putc(folder, '/');
        for (size_t i = p->parts[part].from; i < p->parts[part].to; i++)
            text_putc(folder, (char)p->pieces[i].byte);
    }
    return part;
}
