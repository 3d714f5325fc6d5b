#include "daemon/judge.h"

#include "base/suggest.h"
#include "base/units.h"
#include "ingest/decode/chain.h"
#include "ingest/decode/fit.h"
#include "ingest/reject.h"

/* Bytes of the second look. The first one takes only what the reader has already: a pipe may bring no more
 * for long, and one line is mostly enough. */
#define SECOND_BYTES ((size_t)64 << 10)

/* Bytes of a format that an error can show whole, beside all that it says. */
#define FORMAT_BYTES_MAX 200

struct judge {
    struct chain *chain;
    size_t line_max;
    struct slice directive; /* that holds before the first line */
    size_t lines;           /* lines judged */
    struct slice first;     /* the first line that is rejected */
    size_t first_number;    /* its number, from 1 */
    struct reject why;      /* reason of its reject */
};

static void note_reject(struct judge *j, struct slice line, struct reject why)
{
    if (j->first_number > 0)
        return;
    j->first = line;
    j->first_number = j->lines;
    j->why = why;
}

/* Is there an event in the line? */
static bool has_event(struct judge *j, struct slice line)
{
    const struct record r = {.value = line, .partition = RECORD_NO_PARTITION, .timestamp_ms = -1};
    struct event ev;
    struct reject why = {REJECT_TOO_LONG, j->line_max + 1};
    struct slice bytes;
    enum chain_result what = CHAIN_END;
    bool has = false;
    j->lines++;
    if (line.len > j->line_max && !chain_heeds_directives(j->chain)) {
        note_reject(j, line, why);
        return false;
    }
    chain_start(j->chain, &r);
    while (!has && (what = chain_next(j->chain, &ev, &why, &bytes)) != CHAIN_END) {
        has = what == CHAIN_EVENT;
        if (what == CHAIN_REJECT)
            note_reject(j, line, why);
    }
    chain_flush(j->chain);
    return has;
}

/* Judge the lines of `bytes` from the start. True: it is decided, and *has says whether one has an event. */
static bool judge_bytes(struct judge *j, struct slice bytes, bool is_all, bool takes_last, bool *has)
{
    const char *p = bytes.ptr, *end = slice_end(bytes);
    j->lines = j->first_number = 0;
    if (chain_heeds_directives(j->chain))
        chain_set_directive(j->chain, j->directive);
    *has = false;
    while (p < end && !*has && j->lines < JUDGE_LINES) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        if (newline == NULL && !(is_all && takes_last))
            break;
        const char *line_end = newline != NULL ? newline : end;
        *has = has_event(j, slice_of(p, (size_t)(line_end - p)));
        p = line_end + 1;
    }
    return *has || is_all || j->lines == JUDGE_LINES;
}

/* It proposes the format that fits the first rejected line, as an option of `import`. */
static void print_next(const struct judge *j, const struct decode *d, struct text *out)
{
    struct fit *fit = fit_new(j->line_max);
    struct fit_format found = {0};
    bool fits = fit_reject(fit, d, j->first, j->why.reason, &found);
    if (!fits) {
        text_puts(out, "`tallyd detect FILE` tries all formats; say one by --decode");
    } else if (found.steps.len > FORMAT_BYTES_MAX) {
        text_puts(out, "`tallyd detect FILE` shows the format that would fit; say it by --decode");
    } else if (found.time[0] != '\0') {
        text_puts(out, "Would fit: a source with decode: ");
        fit_print(&found, out); /* with its time, for which there is no option */
    } else {
        text_printf(out, "Would fit: --decode '%s'", found.steps.ptr);
        if (found.doubt != NULL)
            text_printf(out, " (%s)", found.doubt);
    }
    text_fini(&found.steps);
    fit_free(fit);
}

static bool refuse(const struct judge *j, const struct decode *d, bool is_known, struct err *e)
{
    char quote[SUGGEST_QUOTE_BYTES], number[UNITS_NUMBER_BYTES];
    struct text steps = {0}, next = {0};
    struct record r = {.value = j->first};
    struct slice line = j->first;
    struct reject why = j->why;
    decode_print_steps(d, &steps);
    print_next(j, d, &next);
    chain_hide(j->chain, &r, &line, &why);
    err_set(e, EX_DATAERR,
            "none of its %s %s lines can be parsed as %.100s, so nothing of %s is counted. Line %zu, column "
            "%zu: %s, found %s. %.300s, or insist by --force",
            is_known ? "next" : "first", units_number((int64_t)j->lines, number), steps.ptr,
            is_known ? "them" : "it", j->first_number, why.column, reject_help(why.reason),
            suggest_quote(line, quote), next.ptr);
    text_fini(&next);
    text_fini(&steps);
    return false;
}

bool judge_lines(struct reader *rd, const struct decode *d, size_t line_max, bool takes_last, struct err *e)
{
    struct judge j = {
        .chain = chain_new(d, line_max), .line_max = line_max, .directive = reader_directive(rd)};
    bool has, is_decided = false;
    for (size_t len = 1; !is_decided; len = len == 1 ? SECOND_BYTES : 2 * len) {
        struct slice bytes = reader_peek(rd, len);
        is_decided = judge_bytes(&j, bytes, bytes.len < len, takes_last, &has) || len >= JUDGE_BYTES;
    }
    bool good = has || j.first_number == 0 || refuse(&j, d, reader_offset(rd) > 0, e);
    chain_free(j.chain);
    return good;
}

bool judge_moved(const struct source *src, const struct decode *d, struct text *fits)
{
    struct slice bytes = reader_peek(src->reader, input_is_regular(src->in) ? SECOND_BYTES : 1);
    struct fit_format found = {0};
    bool has_line = bytes.len > 0 && memchr(bytes.ptr, '\n', bytes.len) != NULL;
    bool is_moved = has_line && fit_moved(d, slice_cut(&bytes, '\n'), &found);
    if (is_moved)
        fit_print(&found, fits);
    text_fini(&found.steps);
    return is_moved;
}

/* Was a line of the source ever parsed? */
struct parsed {
    const struct range *range;
    bool is;
};

static bool look_at_parsed(void *context, const char *source, const char *partition, const char *report,
                           const char *entry, int64_t value)
{
    struct parsed *p = context;
    p->is |= strcmp(source, p->range->source) == 0 && strcmp(partition, p->range->partition) == 0 &&
             report[0] == '\0' && strcmp(entry, "parsed") == 0 && value > 0;
    return !p->is;
}

bool judge_source(const struct source *src, const struct decode *d, size_t line_max, bool takes_last,
                  struct store *books, struct store *more, struct err *e)
{
    struct parsed p = {.range = &src->range};
    if (src->is_known && ((books != NULL && !store_books(books, look_at_parsed, &p, e)) ||
                          (more != NULL && !p.is && !store_books(more, look_at_parsed, &p, e))))
        return false;
    return p.is || judge_lines(src->reader, d, line_max, takes_last, e) ||
           err_prefix(e, "%s", src->range.label);
}
