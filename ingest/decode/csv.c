#include "ingest/decode/csv.h"

bool csv_names(struct slice columns, struct part_names *names, size_t *count, struct err *e)
{
    const char *p = columns.ptr, *end = slice_end(columns), *comma;
    *names = (struct part_names){0};
    *count = 0;
    do {
        comma = p < end ? memchr(p, ',', (size_t)(end - p)) : NULL;
        struct slice name = slice_trim(slice_of(p, (size_t)((comma != NULL ? comma : end) - p)));
        if (*count == CSV_COLUMNS_MAX)
            return err_set(e, EX_CONFIG, "found more columns than %d, expected at most so many",
                           CSV_COLUMNS_MAX);
        ++*count;
        if (!slice_is(name, "-") && !part_names_add(names, name, (unsigned)*count - 1, e))
            return err_prefix(e, "column %zu", *count);
        p = comma != NULL ? comma + 1 : end;
    } while (comma != NULL);
    return true;
}

/* The quote that closes the column whose text begins at `p`; NULL: there is none. */
static const char *closing_quote(const char *p, const char *end, bool *is_escaped)
{
    while (p < end && (p = memchr(p, '"', (size_t)(end - p))) != NULL) {
        if (p + 1 == end || p[1] != '"')
            return p;
        *is_escaped = true;
        p += 2;
    }
    return NULL;
}

static bool refuse(enum reject_reason *reason, enum reject_reason why, const char **at, const char *here)
{
    *reason = why;
    *at = here;
    return false;
}

bool csv_read(const struct csv *csv, struct slice line, struct parts *ps, enum reject_reason *reason,
              const char **at)
{
    const char *p = line.ptr, *end = slice_end(line);
    for (size_t i = 0; i < csv->count; i++, p++) {
        bool is_quoted = p < end && *p == '"', is_escaped = false;
        const char *from = p + is_quoted;
        if (is_quoted) {
            const char *quote = closing_quote(from, end, &is_escaped);
            if (quote == NULL)
                return refuse(reason, REJECT_UNTERMINATED, at, p);
            p = quote + 1;
        } else {
            const char *separator = p < end ? memchr(p, csv->separator, (size_t)(end - p)) : NULL;
            p = separator != NULL ? separator : end;
        }
        struct slice text = slice_of(from, (size_t)(p - from) - is_quoted);
        if (csv->slots[i] != CSV_SKIP && (is_quoted || text.len > 0))
            parts_put(ps, csv->slots[i], text, is_escaped);
        bool is_last = i + 1 == csv->count;
        if (is_last && p == end)
            return true;
        if (is_last || p == end || *p != csv->separator)
            return refuse(reason, REJECT_COLUMNS, at, p);
    }
    return refuse(reason, REJECT_COLUMNS, at, p);
}

size_t csv_unescape(struct slice text, char *out)
{
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        out[len++] = text.ptr[i];
        i += text.ptr[i] == '"';
    }
    return len;
}
