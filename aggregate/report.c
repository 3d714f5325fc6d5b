#include "aggregate/report.h"

#include "aggregate/sample.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/suggest.h"
#include "base/units.h"
#include "ingest/derive/derive.h"

#include <stdio.h>
#include <stdlib.h>

#define GIVEN_KEY "given host_id" DERIVE_GIVEN_KEY /* how the line begins that has the fingerprint of a key */

/* Every built-in field except `bytes` and `value`, which would make a series of nearly every event. */
const char *const report_dimension_names[] = {
    "path", "path:N",   "target",        "host",  "status",   "status_class", "method",  "vhost", "port",
    "user", "referrer", "referrer_host", "agent", "protocol", "request",      "logname", "name",  NULL};

const char *const report_layout_names[] = {
    [LAYOUT_DAY] = "day", [LAYOUT_HOUR] = "hour", [LAYOUT_MINUTE] = "minute", NULL};

static bool check_name(struct slice name, size_t bytes, const char *what, struct err *e)
{
    char quote[SUGGEST_QUOTE_BYTES];
    if (slice_is_name(name, bytes))
        return true;
    return err_set(e, EX_CONFIG, "found %s, expected a name of a %s: a-z, then a-z, 0-9 and _, at most %zu",
                   suggest_quote(name, quote), what, bytes - 1);
}

static void copy_name(char *to, struct slice name)
{
    memcpy(to, name.ptr, name.len);
    to[name.len] = '\0';
}

bool report_init(struct report *r, struct slice name, int generation, struct err *e)
{
    if (!check_name(name, REPORT_NAME_BYTES, "report", e))
        return false;
    if (generation < 1)
        return err_set(e, EX_CONFIG, "found generation %d, expected 1 or more", generation);
    *r = (struct report){
        .generation = generation, .one_in = 1, .series_max = REPORT_SERIES_MAX, .is_additive = true};
    copy_name(r->name, name);
    return true;
}

void report_fini(struct report *r)
{
    free(r->given);
    free(r->definition);
    *r = (struct report){0};
}

int report_find_dimension(const struct report *r, struct slice name)
{
    for (size_t i = 0; i < r->dimension_count; i++) {
        if (slice_is(name, r->dimensions[i].name))
            return (int)i;
    }
    return -1;
}

int report_find_measure(const struct report *r, struct slice name)
{
    for (size_t i = 0; i < r->measure_count; i++) {
        if (slice_is(name, r->measures[i].name))
            return (int)i;
    }
    return -1;
}

/* The name of a field in a piece, or in a part of a measure between parentheses or commas; "": none. */
static struct slice field_of(enum report_piece kind, struct slice text)
{
    size_t skip = 0;
    while (kind != PIECE_DIMENSION && skip < text.len && text.ptr[skip] == ' ')
        skip++;
    struct slice from = slice_of(text.ptr + skip, text.len - skip);
    struct slice name = slice_of(from.ptr, field_name_len(from)), none = slice_of(text.ptr, 0);
    const char *next = from.ptr + name.len, *end = from.ptr + from.len;
    while (next < end && *next == ' ' && kind != PIECE_DIMENSION && kind != PIECE_FIELD)
        next++;
    bool whole = kind == PIECE_DIMENSION || kind == PIECE_FIELD ? next == end
                 : kind == PIECE_CONDITION                      ? next < end && strchr("=!<>", *next) != NULL
                                           : next < end && (*next == ',' || *next == ')');
    bool derived = slice_is(name, "status_class") || slice_is(name, "referrer_host");
    return whole && !derived ? name : none;
}

bool report_uses(const struct report *r, enum field f)
{
    bool uses = false;
    for (size_t i = 0; i < r->dimension_count; i++)
        uses |= r->dimensions[i].field == f;
    for (size_t i = 0; i < r->condition_count; i++)
        uses |= r->conditions[i].field == f;
    for (size_t i = 0; i < r->measure_count; i++)
        uses |= r->measures[i].kind != MEASURE_COUNT && r->measures[i].field == f;
    for (size_t i = 0; i < r->measure_count; i++)
        uses |= (r->measures[i].fields >> f & 1) != 0;
    for (size_t i = 0; i < r->newest_field_count; i++)
        uses |= r->newest_fields[i] == f;
    uses |= r->newest > 0 && r->newest_field_count == 0 && f < FIELD_COUNT;
    return uses;
}

size_t report_piece_fields(enum report_piece kind, struct slice text,
                           struct slice names[MEASURE_DIMENSIONS_MAX])
{
    size_t count = 0;
    if (kind == PIECE_DIMENSION || kind == PIECE_CONDITION || kind == PIECE_FIELD) {
        names[0] = field_of(kind, text);
        return names[0].len > 0;
    }
    const char *end = slice_end(text);
    const bool is_of = kind == PIECE_MEASURE && text.len > 0 && measure_has_function(text);
    const char *at = is_of ? memchr(text.ptr, '(', text.len) : NULL;
    while (at != NULL && count < MEASURE_DIMENSIONS_MAX) {
        at++;
        names[count] = field_of(kind, slice_of(at, (size_t)(end - at)));
        count += names[count].len > 0;
        at = memchr(at, ',', (size_t)(end - at));
    }
    return count;
}

bool report_add_dimension(struct report *r, struct slice text, struct err *e)
{
    char quote[SUGGEST_QUOTE_BYTES], hint[SUGGEST_HINT_BYTES];
    struct dimension d;
    if (text.len > 5 && memcmp(text.ptr, "path:", 5) == 0 && !dimension_parse(&d, text))
        return err_set(e, EX_CONFIG, "found %s, expected path:1 to path:%d", suggest_quote(text, quote),
                       REPORT_SEGMENTS_MAX);
    if (!dimension_parse(&d, text))
        return err_set(e, EX_CONFIG, "found %s, expected a dimension%s", suggest_quote(text, quote),
                       suggest_hint(text, report_dimension_names, hint));
    if (report_find_dimension(r, text) >= 0)
        return err_set(e, EX_CONFIG, "found dimension \"%s\" twice, expected each once", d.name);
    if (r->dimension_count == REPORT_DIMENSIONS_MAX)
        return err_set(e, EX_CONFIG, "found one more dimension \"%s\", expected at most %d", d.name,
                       REPORT_DIMENSIONS_MAX);
    r->dimensions[r->dimension_count++] = d;
    return true;
}

bool report_add_condition(struct report *r, struct slice text, struct err *e)
{
    struct condition c;
    char quote[SUGGEST_QUOTE_BYTES];
    if (!condition_parse(&c, text, e))
        return false;
    if (r->condition_count == REPORT_CONDITIONS_MAX)
        return err_set(e, EX_CONFIG, "found one more condition %s, expected at most %d",
                       suggest_quote(text, quote), REPORT_CONDITIONS_MAX);
    r->conditions[r->condition_count++] = c;
    return true;
}

bool report_add_measure(struct report *r, struct slice name, struct slice expression, struct err *e)
{
    struct measure m = {0};
    if (!check_name(name, MEASURE_NAME_BYTES, "measure", e) || !measure_parse(&m, expression, e))
        return false;
    copy_name(m.name, name);
    if (report_find_measure(r, name) >= 0)
        return err_set(e, EX_CONFIG, "found measure \"%s\" twice, expected each once", m.name);
    if (r->measure_count == REPORT_MEASURES_MAX)
        return err_set(e, EX_CONFIG, "found one more measure \"%s\", expected at most %d", m.name,
                       REPORT_MEASURES_MAX);
    m.column = r->column_count;
    r->column_count += measure_column_count(&m);
    r->is_additive = r->is_additive && measure_is_additive(&m);
    r->measures[r->measure_count] = m;
    if (measure_has_sketch(&m))
        r->sketched[r->sketch_count++] = r->measure_count;
    r->measure_count++;
    r->begins_usual = r->measure_count >= 2 && r->measures[0].kind == MEASURE_COUNT &&
                      r->measures[1].kind == MEASURE_SUM && !r->measures[1].is_fraction;
    return true;
}

bool report_add_newest_field(struct report *r, struct slice name, struct err *e)
{
    char quote[SUGGEST_QUOTE_BYTES];
    enum field f;
    if (!field_parse(name, &f))
        return err_set(e, EX_CONFIG, "found %s, expected a field", suggest_quote(name, quote));
    for (size_t i = 0; i < r->newest_field_count; i++) {
        if (r->newest_fields[i] == f)
            return err_set(e, EX_CONFIG, "found field \"%s\" twice, expected each once", field_name(f));
    }
    if (r->newest_field_count == RECENT_FIELDS_MAX)
        return err_set(e, EX_CONFIG, "found one more field \"%s\", expected at most %d", field_name(f),
                       RECENT_FIELDS_MAX);
    r->newest_fields[r->newest_field_count++] = f;
    return true;
}

void report_set_given(struct report *r, struct slice lines)
{
    ASSERT(r->given == NULL && (lines.len == 0 || lines.ptr[lines.len - 1] == '\n'));
    r->given = lines.len > 0 ? xstrndup(lines.ptr, lines.len) : NULL;
}

void report_merge_mixed(const struct report *r, int64_t *to, const int64_t *from)
{
    for (size_t i = 0; i < r->measure_count; i++) {
        const struct measure *m = &r->measures[i];
        measure_merge(m, to + m->column, from + m->column);
    }
}

bool report_is_zero(const struct report *r, const int64_t *row)
{
    bool is = true;
    for (size_t i = 0; i < r->column_count; i++)
        is = is && row[i] == 0;
    return is;
}

bool report_take(const struct report *r, int64_t *to, const int64_t *from)
{
    bool has_events = true;
    for (size_t i = 0; i < r->measure_count; i++) {
        const struct measure *m = &r->measures[i];
        if (!measure_take(m, to + m->column, from + m->column))
            return false;
        has_events = has_events && (m->kind != MEASURE_COUNT || to[m->column] > 0);
    }
    return has_events || report_is_zero(r, to);
}

static int compare_conditions(const void *a, const void *b)
{
    const struct condition *x = a, *y = b;
    int order = order_int64(x->field, y->field);
    order = order != 0 ? order : order_int64(x->op, y->op);
    order = order != 0 ? order : order_int64(x->number, y->number);
    return order != 0 ? order : strcmp(x->text, y->text);
}

/* All conditions must hold, so order and repetitions have no meaning: sorts them and drops repetitions. */
static void sort_conditions(struct report *r)
{
    size_t kept = 0;
    qsort(r->conditions, r->condition_count, sizeof *r->conditions, compare_conditions);
    for (size_t i = 0; i < r->condition_count; i++) {
        if (kept == 0 || compare_conditions(&r->conditions[kept - 1], &r->conditions[i]) != 0)
            r->conditions[kept++] = r->conditions[i];
    }
    r->condition_count = kept;
}

static char *write_definition(const struct report *r)
{
    struct text out = {0};
    for (size_t i = 0; i < r->dimension_count; i++)
        text_printf(&out, "by %s\n", r->dimensions[i].name);
    for (size_t i = 0; i < r->condition_count; i++) {
        text_puts(&out, "where ");
        condition_print(&r->conditions[i], &out);
        text_putc(&out, '\n');
    }
    for (size_t i = 0; i < r->measure_count; i++)
        text_printf(&out, "measure %s %s\n", r->measures[i].name, r->measures[i].expression);
    if (r->layout != LAYOUT_DAY)
        text_printf(&out, "layout %s\n", report_layout_names[r->layout]);
    if (r->one_in > 1)
        text_printf(&out, "sample 1/%u\n", r->one_in);
    if (r->newest > 0)
        text_printf(&out, "newest %u", r->newest);
    for (size_t i = 0; r->newest > 0 && i < r->newest_field_count; i++)
        text_printf(&out, " %s", field_name(r->newest_fields[i]));
    text_puts(&out, r->newest > 0 ? "\n" : "");
    for (const char *line = r->given, *end; line != NULL && *line != '\0'; line = end + 1) {
        end = strchr(line, '\n');
        text_printf(&out, "given %.*s\n", (int)(end - line), line);
    }
    return out.ptr;
}

/* Is it the line that has the fingerprint of a key? */
static bool is_of_key(const char *line)
{
    return strncmp(line, GIVEN_KEY, strlen(GIVEN_KEY)) == 0;
}

enum report_likeness report_compare(const struct report *r, const char *definition)
{
    struct text without = {0};
    if (strcmp(r->definition, definition) == 0)
        return REPORT_IS_SAME;
    for (const char *line = r->definition, *end; *line != '\0'; line = end + 1) {
        end = strchr(line, '\n');
        if (!is_of_key(line))
            text_add(&without, line, (size_t)(end + 1 - line));
    }
    const bool is_without = slice_is(text_slice(&without), definition);
    text_fini(&without);
    return is_without ? REPORT_WITHOUT_KEY : REPORT_DIFFERS;
}

/* Can each measure be estimated from a sample, with a known error? */
static bool check_sample(const struct report *r, struct err *e)
{
    bool has_count = false;
    for (size_t i = 0; i < r->measure_count; i++) {
        const struct measure *m = &r->measures[i];
        has_count = has_count || m->kind == MEASURE_COUNT;
        if (!measure_is_scalable(m))
            return err_set(
                e, EX_CONFIG,
                "found measure %s: %s with sample 1/%u, expected count, sum or mean: a sample does not "
                "have the others. Put it into a report without `sample`",
                m->name, m->expression, r->one_in);
    }
    return has_count ||
           err_set(e, EX_CONFIG,
                   "found sample 1/%u without a count, expected one: it tells how far the report's "
                   "figures may be off",
                   r->one_in);
}

/* Puts the newest events behind the measures, as one that no loop over them sees. */
static bool finish_newest(struct report *r, struct err *e)
{
    struct measure *m = &r->measures[r->measure_count];
    if (r->newest == 0)
        return r->newest_field_count == 0 ||
               err_set(e, EX_CONFIG, "found newest_fields without newest, expected both, or none");
    if (report_find_measure(r, slice_text(RECENT_NAME)) >= 0)
        return err_set(e, EX_CONFIG,
                       "found measure \"" RECENT_NAME "\" beside newest: %u, expected another name",
                       r->newest);
    *m = (struct measure){
        .kind = MEASURE_NEWEST, .column = r->column_count, .newest = r->newest, .name = RECENT_NAME};
    snprintf(m->expression, sizeof m->expression, RECENT_NAME " %u", r->newest);
    r->sketched[r->sketch_count] = r->measure_count;
    return true;
}

bool report_finish(struct report *r, struct err *e)
{
    ASSERT(r->definition == NULL);
    for (size_t i = 0; i < r->measure_count; i++) {
        if (report_find_dimension(r, slice_text(r->measures[i].name)) >= 0)
            return err_set(e, EX_CONFIG, "found measure \"%s\" beside a dimension of that name, expected %s",
                           r->measures[i].name, "another name");
    }
    if (r->measure_count == 0 && (!report_add_measure(r, slice_text("hits"), slice_text("count"), e) ||
                                  !report_add_measure(r, slice_text("bytes"), slice_text("sum(bytes)"), e)))
        return false;
    if ((r->one_in > 1 && !check_sample(r, e)) || !finish_newest(r, e))
        return false;
    sort_conditions(r);
    r->definition = write_definition(r);
    return true;
}

/* A stored report stays readable, even if its fields are none of today's sources: makes them known. */
static bool know_fields(enum report_piece kind, struct slice text, struct err *e)
{
    enum field f;
    struct slice names[MEASURE_DIMENSIONS_MAX];
    const size_t count = report_piece_fields(kind, text, names);
    for (size_t i = 0; i < count; i++) {
        if (!field_intern(names[i], &f))
            return err_set(e, EX_DATAERR,
                           "found one more field \"%.*s\", expected at most %d beside the built-in ones",
                           SLICE_ARGS(names[i]), FIELD_OWN_MAX);
    }
    return true;
}

static bool read_layout(struct report *r, struct slice name, struct err *e)
{
    char quote[SUGGEST_QUOTE_BYTES];
    int i = slice_find(name, report_layout_names);
    if (i < 0)
        return err_set(e, EX_DATAERR, "found layout %s, expected hour or minute", suggest_quote(name, quote));
    r->layout = (enum report_layout)i;
    return true;
}

/* Reads "50 host request". */
static bool read_newest(struct report *r, struct slice rest, struct err *e)
{
    struct slice number = slice_cut(&rest, ' ');
    char quote[SUGGEST_QUOTE_BYTES];
    int64_t newest;
    if (!units_take_digits(&number, &newest) || number.len > 0 || newest < 1 || newest > RECENT_MAX)
        return err_set(e, EX_DATAERR, "found newest %s, expected 1 to %d", suggest_quote(number, quote),
                       RECENT_MAX);
    r->newest = (uint32_t)newest;
    while (rest.len > 0) {
        const struct slice name = slice_cut(&rest, ' ');
        if (!know_fields(PIECE_FIELD, name, e) || !report_add_newest_field(r, name, e))
            return false;
    }
    return true;
}

static bool read_given(struct report *r, struct slice line)
{
    size_t len = r->given != NULL ? strlen(r->given) : 0;
    r->given = xrealloc(r->given, len + line.len + 2);
    memcpy(r->given + len, line.ptr, line.len);
    memcpy(r->given + len + line.len, "\n", 2);
    return true;
}

/* Reads one line of a definition; its first word is the kind of the rest. */
static bool read_line(struct report *r, struct slice line, struct err *e)
{
    char quote[SUGGEST_QUOTE_BYTES];
    const char *space = memchr(line.ptr, ' ', line.len);
    size_t word_len = space == NULL ? line.len : (size_t)(space - line.ptr);
    struct slice word = slice_of(line.ptr, word_len), rest = slice_of(line.ptr + line.len, 0);
    if (space != NULL)
        rest = slice_of(space + 1, line.len - word_len - 1);
    if (slice_is(word, "by"))
        return know_fields(PIECE_DIMENSION, rest, e) && report_add_dimension(r, rest, e);
    if (slice_is(word, "where"))
        return know_fields(PIECE_CONDITION, rest, e) && report_add_condition(r, rest, e);
    if (slice_is(word, "layout"))
        return read_layout(r, rest, e);
    if (slice_is(word, "given"))
        return read_given(r, rest);
    if (slice_is(word, "sample"))
        return sample_parse(rest, &r->one_in) ||
               err_set(e, EX_DATAERR, "found sample %s, expected 1/N", suggest_quote(rest, quote));
    if (slice_is(word, "newest"))
        return read_newest(r, rest, e);
    const char *second = rest.len > 0 ? memchr(rest.ptr, ' ', rest.len) : NULL;
    if (slice_is(word, "measure") && second != NULL) {
        struct slice name = slice_of(rest.ptr, (size_t)(second - rest.ptr));
        struct slice expression = slice_of(second + 1, rest.len - name.len - 1);
        return know_fields(PIECE_MEASURE, expression, e) && report_add_measure(r, name, expression, e);
    }
    return err_set(e, EX_DATAERR, "found %s, expected by, where, measure, layout, sample, newest or given",
                   suggest_quote(line, quote));
}

static bool read_lines(struct report *r, struct slice definition, struct err *e)
{
    struct slice rest = definition;
    while (rest.len > 0) {
        const char *end = memchr(rest.ptr, '\n', rest.len);
        size_t len = end == NULL ? rest.len : (size_t)(end - rest.ptr);
        if (!read_line(r, slice_of(rest.ptr, len), e))
            return false;
        len += end != NULL;
        rest = slice_of(rest.ptr + len, rest.len - len);
    }
    if (!report_finish(r, e))
        return false;
    if (!slice_is(definition, r->definition))
        return err_set(e, EX_DATAERR, "found a definition in another spelling than its own");
    return true;
}

bool report_read(struct report *r, struct slice name, int generation, struct slice definition, struct err *e)
{
    char quote[SUGGEST_QUOTE_BYTES];
    *r = (struct report){0};
    if (report_init(r, name, generation, e) && read_lines(r, definition, e))
        return true;
    report_fini(r);
    e->code = EX_DATAERR;
    return err_prefix(e, "stored definition of report %s", suggest_quote(name, quote));
}
