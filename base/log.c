#include "base/log.h"

#include "base/show.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    const char *name;
    int priority; /* syslog(3)'s priority */
} levels[] = {{"debug", 7}, {"info", 6}, {"warn", 4}, {"error", 3}};

static atomic_int lowest = LOG_LEVEL_INFO;
static bool is_journal;

static pthread_mutex_t limits_lock = PTHREAD_MUTEX_INITIALIZER;
static struct log_limit *limits; /* causes with suppressed lines */

void log_init(void)
{
    unsigned long long device, inode;
    struct stat status;
    const char *stream = getenv("JOURNAL_STREAM");
    is_journal = stream != NULL && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
                 fstat(STDERR_FILENO, &status) == 0 && status.st_dev == device && status.st_ino == inode;
}

const char *log_error_prefix(void)
{
    return is_journal ? "<3>" : "";
}

void log_set_level(enum log_level level)
{
    ASSERT((unsigned)level < COUNT_OF(levels));
    atomic_store(&lowest, (int)level);
}

void log_line(enum log_level level, const char *event, const char *fields, ...)
{
    if ((int)level < atomic_load(&lowest))
        return;
    char line[2048], priority[8] = "";
    if (is_journal)
        snprintf(priority, sizeof priority, "<%d>", levels[level].priority);
    int n = snprintf(line, sizeof line, "%slevel=%s event=%s ", priority, levels[level].name, event);
    ASSERT(n > 0 && (size_t)n < sizeof line);
    va_list args;
    va_start(args, fields);
    int m = vsnprintf(line + n, sizeof line - (size_t)n - 1, fields, args);
    va_end(args);
    size_t len = (size_t)n + (m > 0 ? (size_t)m : 0);
    if (len > sizeof line - 2)
        len = sizeof line - 2;
    line[len++] = '\n';
    if (write(STDERR_FILENO, line, len) < 0)
        return; /* standard error is gone, so the failure cannot be reported */
}

static void say_kept(struct log_limit *l)
{
    if (l->kept > 0)
        log_line(l->level, l->event, "suppressed=%u", l->kept);
    l->kept = 0;
}

bool log_limit_pass(struct log_limit *l, enum log_level level, const char *event, int64_t now_ms)
{
    pthread_mutex_lock(&limits_lock);
    if (l->said == 0 || now_ms - l->begun_ms >= LOG_LIMIT_INTERVAL_MS) {
        say_kept(l);
        l->begun_ms = now_ms;
        l->said = 0;
    }
    bool pass = l->said < LOG_LIMIT_LINES;
    if (pass) {
        l->said++;
    } else {
        l->kept++;
        l->level = level;
        l->event = event;
    }
    if (!pass && !l->is_listed) {
        l->is_listed = true;
        l->next = limits;
        limits = l;
    }
    pthread_mutex_unlock(&limits_lock);
    return pass;
}

void log_limit_tell(int64_t now_ms)
{
    pthread_mutex_lock(&limits_lock);
    for (struct log_limit **at = &limits; *at != NULL;) {
        struct log_limit *l = *at;
        if (now_ms - l->begun_ms < LOG_LIMIT_INTERVAL_MS) {
            at = &l->next;
            continue;
        }
        say_kept(l);
        l->is_listed = false;
        *at = l->next;
    }
    pthread_mutex_unlock(&limits_lock);
}

const char *log_quote(const char *text, char buf[LOG_QUOTE_BYTES])
{
    const char *end = text + strlen(text);
    size_t n = 0, len;
    buf[n++] = '"';
    for (; text < end; text += len) {
        bool is_safe = show_is_safe(text, end, &len);
        if (n + 4 * len > LOG_QUOTE_BYTES - 2)
            break;
        if (*text == '"' || *text == '\\')
            buf[n++] = '\\';
        if (is_safe || (unsigned char)*text <= 0x7f)
            n += show_into(buf + n, len + 1, slice_of(is_safe ? text : " ", len));
        else
            n += show_into(buf + n, 4 * len + 1, slice_of(text, len));
    }
    buf[n++] = '"';
    buf[n] = '\0';
    return buf;
}
