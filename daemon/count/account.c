#include "daemon/count/account.h"

#include "base/show.h"
#include "base/units.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define BAR_CELLS 24

void progress_bar_init(struct progress_bar *bar, const char *name, int64_t size, const struct clock *clock,
                       bool quiet)
{
    *bar = (struct progress_bar){.out = !quiet && isatty(STDERR_FILENO) ? stderr : NULL,
                                 .name = name,
                                 .size = size,
                                 .clock = clock,
                                 .begun_ms = clock_mono_ms(clock)};
}

void progress_bar_show(struct progress_bar *bar, const struct pipeline_progress *progress)
{
    char lines[UNITS_NUMBER_BYTES], rate[UNITS_NUMBER_BYTES], cells[BAR_CELLS + 1], eta[32] = "",
                                                                                    name[SHOW_BYTES];
    if (bar->out == NULL)
        return;
    int64_t ms = clock_mono_ms(bar->clock) - bar->begun_ms;
    int64_t consumed = progress->books.entries[BOOK_CONSUMED];
    int64_t at = progress->raw_offset, size = bar->size;
    int done = size > 0 ? (int)(at * BAR_CELLS / size) : 0;
    for (int i = 0; i < BAR_CELLS; i++)
        cells[i] = i < done ? '#' : '.';
    cells[BAR_CELLS] = '\0';
    if (size > 0 && at > 0 && ms > 500)
        snprintf(eta, sizeof eta, "  ETA %" PRId64 " s", (size - at) * ms / at / 1000);
    fprintf(bar->out, "\r%.40s [%s] %3d%%  %" PRId64 " MiB  %s lines  %s lines/s%s\033[K",
            show(bar->name, name), cells, size > 0 ? (int)(at * 100 / size) : 0, progress->offset >> 20,
            units_number(consumed, lines), units_number(ms > 0 ? consumed * 1000 / ms : 0, rate), eta);
    fflush(bar->out);
}

void progress_bar_clear(struct progress_bar *bar)
{
    if (bar->out != NULL)
        fputs("\r\033[K", bar->out);
}

void account_books(FILE *out, const struct books *books, const struct report *reports)
{
    char a[UNITS_NUMBER_BYTES], b[UNITS_NUMBER_BYTES], c[UNITS_NUMBER_BYTES], d[UNITS_NUMBER_BYTES];
    fprintf(out, "  %-16s consumed %s = rejected %s + parsed %s\n", "lines",
            units_number(books->entries[BOOK_CONSUMED], a), units_number(books_rejected(books), b),
            units_number(books->entries[BOOK_PARSED], c));
    for (size_t r = 0; r < books->report_count; r++) {
        const int64_t *e = &books->entries[BOOK_SOURCE_COUNT + r * BOOK_REPORT_COUNT];
        fprintf(out, "  %-16s parsed %s = counted %s + filtered %s + late %s\n", reports[r].name,
                units_number(e[BOOK_REPORT_PARSED], a), units_number(e[BOOK_COUNTED], b),
                units_number(e[BOOK_FILTERED], c), units_number(e[BOOK_LATE], d));
    }
    if (!books_balance(books))
        fputs("  THE BOOKS DO NOT BALANCE: this is a bug in tallyd, please report it\n", out);
}

void account_rejects(FILE *out, const struct pipeline_progress *progress)
{
    char n[UNITS_NUMBER_BYTES];
    for (int i = 0; i < REJECT_COUNT; i++) {
        int64_t count = progress->books.entries[BOOK_REJECTED + i];
        if (count == 0)
            continue;
        fprintf(out, "  rejected %s: %s\n", units_number(count, n), reject_help((enum reject_reason)i));
        for (int k = 0; k < progress->samples.count[i]; k++) {
            const struct sample *s = &progress->samples.list[i][k];
            fprintf(out, "    at byte %" PRId64 ", column %zu: %s\n", s->offset, s->why.column, s->line);
        }
    }
}

void account_file(FILE *out, const struct account_file *f, const struct pipeline_progress *p,
                  const struct report *reports)
{
    char lines[UNITS_NUMBER_BYTES], rate[UNITS_NUMBER_BYTES], from[UNITS_NUMBER_BYTES],
        to[UNITS_NUMBER_BYTES], path[SHOW_BYTES];
    int64_t consumed = p->books.entries[BOOK_CONSUMED];
    fprintf(out, "%s: ", show(f->path, path));
    if (f->note[0] != '\0')
        fprintf(out, "%s; ", f->note);
    if (consumed == 0 && f->is_known)
        fprintf(out, "nothing new: all %s bytes are counted already\n", units_number(p->stored, to));
    else
        fprintf(out, "%s %s lines, bytes %s to %s, in %.2f s (%s lines/s)\n",
                f->is_dry ? "would count" : "counted", units_number(consumed, lines),
                units_number(f->from, from), units_number(p->stored, to), (double)f->took_ms / 1000,
                units_number(consumed * 1000 / (f->took_ms > 0 ? f->took_ms : 1), rate));
    if (consumed > 0)
        account_books(out, &p->books, reports);
    account_rejects(out, p);
    if (f->left > 0)
        fprintf(out,
                "  %zu bytes of an unfinished last line are left for later "
                "(--last-line counts them)\n",
                f->left);
}

void account_raws(FILE *out, const struct raw_figures *raws, size_t count)
{
    char stored[UNITS_NUMBER_BYTES], refused[UNITS_NUMBER_BYTES], expired[UNITS_NUMBER_BYTES];
    for (size_t i = 0; i < count; i++) {
        if (raws[i].source != NULL)
            fprintf(out, "raw.%-12s documents stored %s, refused %s, expired %s\n", raws[i].source,
                    units_number(raws[i].stored, stored), units_number(raws[i].refused, refused),
                    units_number(raws[i].expired, expired));
    }
}
