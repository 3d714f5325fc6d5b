/* account.h - prints what an import did: its progress while it lasts, and its books at the end (books.h). */
#pragma once

#include "daemon/count/pipeline.h"

#include <stdio.h>

/* The progress line of one file, if standard error is a terminal. */
struct progress_bar {
    FILE *out; /* NULL: silent */
    const char *name;
    int64_t size; /* bytes of the file on disk; 0: unknown */
    const struct clock *clock;
    int64_t begun_ms;
};

void progress_bar_init(struct progress_bar *bar, const char *name, int64_t size, const struct clock *clock,
                       bool quiet);
void progress_bar_show(struct progress_bar *bar, const struct pipeline_progress *progress);
void progress_bar_clear(struct progress_bar *bar);

/* A file that was imported. */
struct account_file {
    const char *path, *note; /* `note`: how it was recognised; "": as expected */
    bool is_known;           /* part of it was counted before */
    bool is_dry;             /* nothing was counted (--dry-run) */
    int64_t from;            /* offset at which the import began */
    int64_t took_ms;
    size_t left; /* bytes of an unfinished last line */
};

/* Prints all that was counted of a file, by the functions below. */
void account_file(FILE *out, const struct account_file *f, const struct pipeline_progress *p,
                  const struct report *reports);
/* Print the books: a line for the source and a line for each report. */
void account_books(FILE *out, const struct books *books, const struct report *reports);
/* Print how many raw events were stored, or why they were not. */
void account_raws(FILE *out, const struct raw_figures *raws, size_t count);
/* Print every reason for which lines were rejected, with samples. */
void account_rejects(FILE *out, const struct pipeline_progress *progress);
