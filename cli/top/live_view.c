#include "cli/top/live_view.h"

#include "base/civil.h"
#include "base/utf8.h"

#include <langinfo.h>
#include <math.h>
#include <stdio.h>
#include <wchar.h>
#include <wctype.h>

#define FIGURE_BYTES   40
#define BAR_COLUMNS    10
#define MEDIAN_COLUMNS 12
#define CHART_ROWS     5
#define LEVELS         8 /* levels of a block character */
#define NOTES_MAX      2 /* of an answer: estimates, and what a report did not count */

enum style { PLAIN, BOLD, FAINT, BAD, GOOD, STYLE_COUNT };

static const char *const starts[STYLE_COUNT] = {"", "\033[1m", "\033[2m", "\033[1;31m", "\033[32m"};
static const char *const columns_full[2][LEVELS + 1] = {{" ", ".", ".", ":", ":", "|", "|", "#", "#"},
                                                        {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}};
static const char *const bars_full[2][LEVELS + 1] = {{" ", " ", " ", " ", "-", "-", "-", "-", "#"},
                                                     {" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"}};

struct frame {
    const struct live_view *view;
    struct text *out;
    int column, row; /* position of the cursor */
    bool is_cut;     /* something did not fit in the line */
    bool is_utf8;
};

/* Is the current line inside the window? */
static bool has_room(const struct frame *f)
{
    return f->view->rows == 0 || f->row < f->view->rows;
}

/* Draw as much of the text as fits in the line. */
static void put(struct frame *f, enum style style, const char *text)
{
    mbstate_t state = {0};
    size_t left = strlen(text), n;
    bool styled = f->view->on_screen && style != PLAIN;
    if (!has_room(f) || f->is_cut)
        return;
    text_puts(f->out, styled ? starts[style] : "");
    for (wchar_t c; left > 0; text += n, left -= n) {
        n = mbrtowc(&c, text, left, &state);
        bool good = n != (size_t)-1 && n != (size_t)-2;
        int width = good && !utf8_is_hiding((uint32_t)c) ? wcwidth(c) : -1;
        if (!good) {
            n = 1;
            state = (mbstate_t){0};
        }
        if (f->column + (width < 0 ? 1 : width) > f->view->columns) {
            f->is_cut = true; /* skip narrower characters, too */
            break;
        }
        f->column += width < 0 ? 1 : width;
        text_add(f->out, width < 0 ? "?" : text, width < 0 ? 1 : n);
    }
    text_puts(f->out, styled ? "\033[0m" : "");
}

static void PRINTF_LIKE(3, 4) put_format(struct frame *f, enum style style, const char *format, ...)
{
    char buf[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(buf, sizeof buf, format, args);
    va_end(args);
    put(f, style, buf);
}

/* End a line, and clear the rest of the previous picture. A full line has no rest: clearing would delete its
 * last character. A screen's last line has no line feed, which would scroll it. */
static void end_line(struct frame *f)
{
    if (!has_room(f))
        return;
    text_puts(f->out, f->view->on_screen && f->column < f->view->columns ? "\033[K" : "");
    f->row++;
    f->column = 0;
    f->is_cut = false;
    if (has_room(f))
        text_puts(f->out, "\n");
}

/* Format as "1,234,567", or with six digits if it is not whole; "-" if it is absent (NAN). */
static const char *figure(double value, char buf[FIGURE_BYTES])
{
    char digits[FIGURE_BYTES];
    if (isnan(value))
        return "-";
    bool is_whole = fabs(value) < 1e15 && value == floor(value);
    snprintf(digits, sizeof digits, is_whole ? "%.0f" : "%.6g", value);
    size_t len = strlen(digits), n = 0;
    for (size_t i = 0; i < len; i++) {
        buf[n++] = digits[i];
        if (is_whole && digits[i] != '-' && i + 1 < len && (len - i - 1) % 3 == 0)
            buf[n++] = ',';
    }
    buf[n] = '\0';
    return buf;
}

static const char *duration(double ms, char buf[FIGURE_BYTES])
{
    long s = (long)(ms / 1000);
    if (s < 60)
        snprintf(buf, FIGURE_BYTES, "%ld s", s);
    else if (s < 3600)
        snprintf(buf, FIGURE_BYTES, "%ld min", s / 60);
    else if (s < 86400)
        snprintf(buf, FIGURE_BYTES, "%ld h %ld min", s / 3600, s % 3600 / 60);
    else
        snprintf(buf, FIGURE_BYTES, "%ld d %ld h", s / 86400, s % 86400 / 3600);
    return buf;
}

static void draw_head(struct frame *f, const struct live *l)
{
    char buf[FIGURE_BYTES];
    const char *state = live_text(l->status, "state", "starting");
    const char *trouble = live_text(l->status, "not_ready", NULL);
    put(f, BOLD, "tallyd ");
    put(f, f->view->error != NULL || trouble != NULL ? BAD : GOOD,
        f->view->error != NULL ? "no answer" : state);
    put_format(f, FAINT, "  %s%s%s, up %s", live_text(l->status, "source", ""), f->is_utf8 ? " → " : " -> ",
               live_text(l->status, "store", ""), duration(live_number(l->status, "uptime_ms", 0), buf));
    end_line(f);
    if (f->view->error != NULL || trouble != NULL) {
        put(f, BAD, f->view->error != NULL ? f->view->error : trouble);
        end_line(f);
    }
    for (int i = 0; i < NOTES_MAX; i++) {
        char path[16];
        snprintf(path, sizeof path, "notes.%d", i);
        const char *note = live_text(l->charts[0].total, path, NULL);
        if (note == NULL)
            break;
        put(f, FAINT, note);
        end_line(f);
    }
}

static void draw_figures(struct frame *f, const struct live *l)
{
    char buf[FIGURE_BYTES];
    double rate = live_number(l->status, "rate", 0), rejected = live_number(l->status, "rejected", 0);
    bson_iter_t list;
    put(f, BOLD, figure(rate >= 100 ? round(rate) : rate, buf));
    put(f, PLAIN, " lines/s   ");
    put(f, BOLD, figure(live_number(l->status, "consumed", 0), buf));
    put(f, PLAIN, " lines   ");
    put(f, rejected > 0 ? BAD : BOLD, figure(rejected, buf));
    put(f, PLAIN, " rejected");
    if (live_list(l->status, "partitions", &list) && bson_iter_next(&list)) {
        put(f, PLAIN, "   ");
        put(f, BOLD, figure(live_number(l->status, "lag", 0), buf));
        put(f, PLAIN, " behind");
    }
    end_line(f);
}

/* Collect the value of each minute; returns how many there are. */
static size_t read_minutes(const struct live_chart *chart, double values[LIVE_MINUTES])
{
    bson_iter_t list, row, value;
    size_t count = 0;
    if (!live_list(chart->minutes, "values", &list))
        return 0;
    while (count < LIVE_MINUTES && bson_iter_next(&list))
        values[count++] = bson_iter_recurse(&list, &row) && bson_iter_find_descendant(&row, "1", &value) &&
                                  BSON_ITER_HOLDS_NUMBER(&value)
                              ? bson_iter_as_double(&value)
                              : NAN;
    return count;
}

static void draw_chart(struct frame *f, const struct live *l, const struct live_chart *chart)
{
    char total[FIGURE_BYTES], peak[FIGURE_BYTES];
    double values[LIVE_MINUTES], most = 0;
    size_t count = read_minutes(chart, values),
           width = (size_t)(f->view->columns > 1 ? f->view->columns - 1 : 1);
    size_t first = count > width ? count - width : 0;
    int rows = f->view->rows > 0 && f->view->rows < 20 ? 1 : CHART_ROWS / (int)l->chart_count;
    for (size_t i = 0; i < count; i++)
        most = values[i] > most ? values[i] : most;
    put_format(f, BOLD, "%s of %s by minute, last hour", chart->measure, l->top_report);
    put_format(f, PLAIN, "   %s%s, most in a minute %s", l->adds_up ? "in all " : "",
               figure(live_number(chart->total, "values.0.1", NAN), total), figure(most, peak));
    end_line(f);
    for (int row = rows - 1; row >= 0 && count > 0; row--) {
        put(f, PLAIN, " ");
        for (size_t i = first; i < count; i++) {
            double level =
                most > 0 && values[i] > 0 ? ceil(values[i] / most * rows * LEVELS) - row * LEVELS : 0;
            put(f, PLAIN, columns_full[f->is_utf8][level < 0 ? 0 : level > LEVELS ? LEVELS : (int)level]);
        }
        end_line(f);
    }
}

/* ---- series: from /api/v1/top, or from /api/v1/query?top= */

struct entry {
    double value, share, before; /* NAN: absent */
    double median;               /* beside another quantile of a histogram */
    bson_iter_t names;           /* values of its dimensions */
};

static double member(const bson_iter_t *entry, const char *path)
{
    bson_iter_t it, found;
    bool is_there = bson_iter_recurse(entry, &it) && bson_iter_find_descendant(&it, path, &found) &&
                    BSON_ITER_HOLDS_NUMBER(&found);
    return is_there ? bson_iter_as_double(&found) : NAN;
}

static bool next_entry(bson_iter_t *list, struct entry *en)
{
    bson_iter_t it, names;
    if (!bson_iter_next(list))
        return false;
    en->value = member(list, "value");
    en->share = member(list, "share");
    en->before = member(list, "before");
    en->median = member(list, "p50");
    return bson_iter_recurse(list, &it) && bson_iter_find_descendant(&it, "series", &names) &&
           BSON_ITER_HOLDS_DOCUMENT(&names) && bson_iter_recurse(&names, &en->names);
}

static void draw_classes(struct frame *f, const struct live *l)
{
    double classes[10] = {0}, total = 0;
    struct entry en;
    bson_iter_t list;
    if (!live_list(l->classes, "series", &list))
        return;
    while (next_entry(&list, &en)) {
        const char *name = bson_iter_next(&en.names) && BSON_ITER_HOLDS_UTF8(&en.names)
                               ? bson_iter_utf8(&en.names, NULL)
                               : "";
        if (*name < '1' || *name > '5' || isnan(en.value))
            continue;
        classes[*name - '0'] += en.value;
        total += en.value;
    }
    put(f, BOLD, "status");
    for (int c = 1; c <= 5; c++) {
        if (classes[c] > 0)
            put_format(f, c == 5 ? BAD : PLAIN, "   %dxx %.2f %%", c, 100 * classes[c] / total);
    }
    end_line(f);
}

/* `known`: the hour before has counts. */
static const char *trend(const struct entry *en, bool known, char buf[FIGURE_BYTES])
{
    double change = 100 * (en->value - en->before) / fabs(en->before);
    if (!known || isnan(en->value))
        return "-";
    if (isnan(en->before) || en->before == 0)
        return "new";
    if (fabs(change) < 0.5)
        return "=";
    snprintf(buf, FIGURE_BYTES, fabs(change) >= 1000 ? "%c999+ %%" : "%c%.0f %%", change > 0 ? '+' : '-',
             fabs(change));
    return buf;
}

/* A quantile has no share of a whole: a histogram's column is that of the median. */
static bool has_median(const struct live *l)
{
    return l->chart_count == LIVE_CHARTS;
}

static void draw_entry(struct frame *f, const struct live *l, struct entry *en, double most, bool known)
{
    char value[FIGURE_BYTES], change[FIGURE_BYTES], share[FIGURE_BYTES] = "-", median[FIGURE_BYTES];
    int eighths = most > 0 && en->value > 0 ? (int)(en->value / most * BAR_COLUMNS * LEVELS) : 0;
    if (!isnan(en->share))
        snprintf(share, sizeof share, "%.2f %%", 100 * en->share);
    put_format(f, PLAIN, "%14s %*s %7s  ", figure(en->value, value), has_median(l) ? MEDIAN_COLUMNS : 8,
               has_median(l) ? figure(en->median, median) : share, trend(en, known, change));
    for (int i = 0; i < BAR_COLUMNS; i++, eighths -= LEVELS)
        put(f, PLAIN, bars_full[f->is_utf8][eighths < 0 ? 0 : eighths > LEVELS ? LEVELS : eighths]);
    while (bson_iter_next(&en->names)) {
        const char *name = BSON_ITER_HOLDS_UTF8(&en->names) ? bson_iter_utf8(&en->names, NULL) : "";
        put(f, PLAIN, "  ");
        put(f, PLAIN, *name != '\0' ? name : "(empty)");
    }
    end_line(f);
}

static void draw_top(struct frame *f, const struct live *l)
{
    struct entry en;
    bson_iter_t list;
    double most = 0;
    bool known = live_number(l->top, "before.total", 0) > 0;
    if (!live_list(l->top, "series", &list))
        return;
    put_format(f, BOLD, "%14s %*s %7s", l->charts[0].measure, has_median(l) ? MEDIAN_COLUMNS : 8,
               has_median(l) ? "p50" : "share", "trend");
    end_line(f);
    while (has_room(f) && next_entry(&list, &en)) {
        most = most > 0 ? most : en.value;
        draw_entry(f, l, &en, most, known);
    }
}

void live_draw(const struct live *l, const struct live_view *view, struct text *out)
{
    struct frame f = {.view = view, .out = out, .is_utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0};
    text_puts(out, view->on_screen ? "\033[H" : "");
    draw_head(&f, l);
    draw_figures(&f, l);
    for (size_t i = 0; i < l->chart_count; i++)
        draw_chart(&f, l, &l->charts[i]);
    draw_classes(&f, l);
    draw_top(&f, l);
    text_puts(out, view->on_screen && has_room(&f) ? "\033[J" : "");
}
