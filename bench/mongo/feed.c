/* feed.c - lines of the imaginary site on standard output, in time, to measure how old an event is when it is
 * stored.
 *
 *     build/mongo_feed RATE SECONDS
 *
 * Every 10 ms it writes a hundredth of RATE combined lines of that moment, so that whoever counts the lines
 * knows of each when it was due: line N at START_MS + N ÷ RATE. If the reader does not take them, the rest
 * comes late, which is not forgiven: it is due when it was. On standard error it says
 *
 *     START_MS         (wall clock), and at the end
 *     BEHIND_MS        how late the last line was
 */
#include "bench/site.h"
#include "bench/wall.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

enum { TICK_MS = 10, SEED = 1, AHEAD_MS = 500 };

static void write_all(const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = write(STDOUT_FILENO, bytes, len);
        if (n < 0 && errno != EINTR) {
            perror("mongo_feed: write");
            exit(EX_IOERR);
        }
        bytes += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
}

int main(int argc, char **argv)
{
    int64_t rate = argc == 3 ? atoll(argv[1]) : 0, seconds = argc == 3 ? atoll(argv[2]) : 0;
    if (rate < 1 || seconds < 1) {
        fputs("usage: mongo_feed RATE SECONDS\n", stderr);
        return EX_USAGE;
    }
    int64_t per_tick = rate * TICK_MS / 1000 + 1, written = 0;
    char *lines = malloc((size_t)per_tick * SITE_LINE_BYTES_MAX);
    struct site *site = site_new(SEED);
    if (!lines)
        return EX_OSERR;
    signal(SIGPIPE, SIG_IGN);
    int64_t start_ms = wall_ms() + AHEAD_MS;
    fprintf(stderr, "%" PRId64 "\n", start_ms);
    for (int64_t ms = 0; ms < seconds * 1000; ms += TICK_MS) {
        size_t len = 0;
        for (int64_t due = rate * (ms + TICK_MS) / 1000; written < due; written++)
            len += site_encode(site, (start_ms + ms) / 1000, lines + len);
        wall_sleep_until(start_ms + ms);
        write_all(lines, len);
    }
    fprintf(stderr, "%" PRId64 "\n", wall_ms() - start_ms - seconds * 1000);
    free(lines);
    site_free(site);
    return EX_OK;
}
