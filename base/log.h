/* log.h - the log for the operator: one logfmt line on standard error per change of state.
 *
 *   level=info event=started store=sqlite:tallyd.db reports=2
 *
 * Rules   : never a line per record; counters tell the rest. Text values are quoted by log_quote(). Frequent
 *           events use log_limited(): each cause writes at most LOG_LIMIT_LINES lines per interval, then
 *           one line that says how many were suppressed.
 * Journal : if standard error goes to the journal (JOURNAL_STREAM names its device and inode), each line
 *           begins with its priority, "<6>" (sd-daemon(3)).
 * Errors  : none; a line that cannot be written is lost.
 * Threads : any; one write(2) writes a line.
 */
#pragma once

#include "base/check.h"
#include "base/clock.h"

#include <stdbool.h>

enum log_level { LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARN, LOG_LEVEL_ERROR };

/* Finds out whether standard error goes to the journal; call it before any other thread starts. */
void log_init(void);
/* The beginning of a line on standard error that says why a program ends: "<3>" makes it an error in the
 * journal; elsewhere it is "". */
const char *log_error_prefix(void);
void log_set_level(enum log_level level);
/* `fields` is the rest of the line: log_info("started", "port=%d", port). */
void log_line(enum log_level level, const char *event, const char *fields, ...) PRINTF_LIKE(3, 4);

#define log_info(event, ...)  log_line(LOG_LEVEL_INFO, event, __VA_ARGS__)
#define log_warn(event, ...)  log_line(LOG_LEVEL_WARN, event, __VA_ARGS__)
#define log_error(event, ...) log_line(LOG_LEVEL_ERROR, event, __VA_ARGS__)

#define LOG_LIMIT_LINES       5
#define LOG_LIMIT_INTERVAL_MS 60000

/* One cause; static storage, all zero at first. */
struct log_limit {
    struct log_limit *next; /* in the list of causes with suppressed lines */
    bool is_listed;
    enum log_level level;
    const char *event;
    int64_t begun_ms; /* start of its interval, monotonic */
    unsigned said;    /* lines written in the interval */
    unsigned kept;    /* lines suppressed in the interval */
};

/* The time by which lines are limited. A person reads the log in real time, so no other clock is given. */
static inline int64_t log_now_ms(void)
{
    return clock_mono_ms(&clock_system);
}

/* May this cause write one more line? */
bool log_limit_pass(struct log_limit *l, enum log_level level, const char *event, int64_t now_ms);
/* Logs the number of suppressed lines for each cause whose interval is over. Call it now and then with
 * log_now_ms(), and with INT64_MAX at the end. */
void log_limit_tell(int64_t now_ms);

#define log_limited(level, event, ...)                                       \
    do {                                                                     \
        static struct log_limit log_limit_here;                              \
        if (log_limit_pass(&log_limit_here, (level), (event), log_now_ms())) \
            log_line((level), (event), __VA_ARGS__);                         \
    } while (0)

/* A logfmt value with its quotes, safe to print with %s; buf is cut at its size. */
#define LOG_QUOTE_BYTES 1024
const char *log_quote(const char *text, char buf[LOG_QUOTE_BYTES]);
