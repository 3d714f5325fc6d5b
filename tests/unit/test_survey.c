/* Which file of a log is read next? A row is a folder, what the store knows of its files, and the answer. */
#include "base/check.h"
#include "tests/support/rotating.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define FILES_MAX 5
#define KNOWN_MAX 4
struct row {
    const char *rule;
    struct place files[FILES_MAX];
    struct counted known[KNOWN_MAX];
    const char *answer, *olddir;
};

static const struct row rows[] = {
    /* order */
    {"a log that is alone", {{LOG, 'a', 9, 0}}, {{0}}, "log new", NULL},
    {"no log yet", {{0}}, {{0}}, "nothing", NULL},
    {"an empty log", {{LOG, 'a', 0, 0}}, {{0}}, "nothing", NULL},
    {"a log that goes on", {{LOG, 'a', 20, 0}}, {{'a', 9, FOLLOWED}}, "log from 9", NULL},
    {"the rest of a known file comes first",
     {{"access.log.2", 'a', 110, 60}, {"access.log.1", 'b', 100, 30}, {LOG, 'c', 9, 0}},
     {{'a', 100, FOLLOWED}},
     "rotated access.log.2 from 100",
     NULL},
    {"then files that were never seen",
     {{"access.log.2", 'a', 110, 60}, {"access.log.1", 'b', 100, 30}, {LOG, 'c', 9, 0}},
     {{'a', 110, FOLLOWED}},
     "rotated access.log.1 new, ended a",
     NULL},
    {"of these the oldest",
     {{"access.log.3", 'a', 9, 90},
      {"access.log.2", 'b', 9, 60},
      {"access.log.1", 'c', 9, 30},
      {LOG, 'd', 9, 0}},
     {{'a', 9, FOLLOWED}},
     "rotated access.log.2 new, ended a",
     NULL},
    {"the log comes last",
     {{"access.log.2", 'a', 110, 60}, {"access.log.1", 'b', 100, 30}, {LOG, 'c', 9, 0}},
     {{'a', 110, ENDED}, {'b', 100, FOLLOWED}},
     "log new, ended b",
     NULL},
    {"a log that is empty has a last file before it",
     {{"access.log.1", 'a', 110, 60}, {LOG, 'c', 0, 0}},
     {{'a', 100, FOLLOWED}},
     "rotated access.log.1 from 100",
     NULL},
    {"and that shows where to look on",
     {{"access.log.1", 'a', 100, 60}, {LOG, 'c', 0, 0}},
     {{'a', 100, FOLLOWED}},
     "nothing",
     NULL},
    {"a file that ended may have more",
     {{"access.log.1", 'a', 110, 60}, {LOG, 'b', 9, 0}},
     {{'a', 100, ENDED}, {'b', 9, FOLLOWED}},
     "rotated access.log.1 from 100",
     NULL},
    {"a followed file does not end while it has more",
     {{"access.log.2", 'a', 110, 90}, {"access.log.1", 'b', 110, 60}, {LOG, 'c', 9, 0}},
     {{'a', 100, ENDED}, {'b', 100, FOLLOWED}},
     "rotated access.log.2 from 100",
     NULL},

    /* history */
    {"files of before the first start are history",
     {{"access.log.1", 'a', 9, 60}, {LOG, 'b', 9, 0}},
     {{0}},
     "log new",
     NULL},
    {"files older than the newest known one are history",
     {{"access.log.2", 'a', 9, 60}, {"access.log.1", 'b', 9, 30}, {LOG, 'c', 9, 0}},
     {{'b', 9, ENDED}},
     "log new",
     NULL},
    {"files beside a known log are history",
     {{"access.log.2", 'a', 9, 60}, {"access.log.1", 'b', 9, 30}, {LOG, 'c', 20, 0}},
     {{'a', 9, ENDED}, {'c', 9, FOLLOWED}},
     "log from 9",
     NULL},
    {"if none is known any more: changed since the log was last counted",
     {{"access.log.2", 'b', 9, 300}, {"access.log.1", 'c', 9, 60}, {LOG, 'd', 9, 0}},
     {{'a', 9, ENDED, .age_min = 180}, {'z', 9, ENDED, .label = "access.log.7", .age_min = 1}},
     "rotated access.log.1 new",
     NULL},
    {"an older name is older",
     {{"access.log.2", 'b', 9, 35}, {"access.log.1", 'a', 9, 30}, {LOG, 'c', 9, 0}},
     {{'a', 9, FOLLOWED}},
     "log new, ended a",
     NULL},
    {"a server may write to a renamed file: close times, so the name tells",
     {{"access.log.2", 'a', 9, 50}, {"access.log.1", 'b', 9, 55}, {LOG, 'c', 9, 0}},
     {{'a', 9, FOLLOWED}},
     "rotated access.log.1 new, ended a",
     NULL},
    {"but not if times are far from each other",
     {{"access.log.2", 'a', 9, 50}, {"access.log.1", 'b', 9, 61}, {LOG, 'c', 9, 0}},
     {{'a', 9, FOLLOWED}},
     "log new, ended a",
     NULL},
    {"numbers that rise: times tell",
     {{"access.log.1", 'a', 9, 60}, {"access.log.2", 'b', 9, 30}, {LOG, 'c', 9, 0}},
     {{'a', 9, FOLLOWED}},
     "rotated access.log.2 new, ended a",
     NULL},

    /* lost */
    {"a followed file that is not there is lost", {{LOG, 'b', 9, 0}}, {{'a', 9, FOLLOWED}}, "lost a", NULL},
    {"a file that ended is not", {{LOG, 'b', 9, 0}}, {{'a', 9, ENDED}}, "log new", NULL},
    {"a loss is told once", {{LOG, 'b', 9, 0}}, {{'a', 9, GONE}}, "log new", NULL},
    {"an imported file may go", {{LOG, 'b', 9, 0}}, {{'a', 9, IMPORTED}}, "log new", NULL},
    {"another log's file is not this one's",
     {{LOG, 'b', 9, 0}},
     {{'a', 9, FOLLOWED, .label = "access.log.7"}},
     "log new",
     NULL},
    {"another host's file is not this one's",
     {{LOG, 'b', 9, 0}},
     {{'a', 9, .state = RANGE_FOLLOWED, .host = HOST + 1}},
     "log new",
     NULL},
    {"a file that has no host is this one's",
     {{LOG, 'b', 9, 0}},
     {{'a', 9, .state = RANGE_FOLLOWED}},
     "lost a",
     NULL},
    {"another host's file does not end, either",
     {{"access.log.1", 'a', 9, 60}, {LOG, 'b', 9, 0}},
     {{'a', 9, .state = RANGE_FOLLOWED, .host = HOST + 1}},
     "log new",
     NULL},
    {"a shorter file that begins so, but is a young one, is no copy",
     {{"access.log.1", 'a', 5, 60}, {LOG, 'b', 9, 0}},
     {{'a', 9, FOLLOWED}},
     "lost a",
     NULL},

    {"a shorter file of whose head the store knows little is no copy, either",
     {{"access.log.1", 'a', 50, 60}, {LOG, 'b', 9, 0}},
     {{'a', 110, IMPORTED, .seen = 1, .age_min = 180}},
     "rotated access.log.1 new",
     NULL},

    {"a number is missing: files came and went unseen",
     {{"access.log.4", 'a', 9, 60}, {"access.log.1", 'b', 9, 30}, {LOG, 'c', 9, 0}},
     {{'a', 9, FOLLOWED}},
     "rotated access.log.1 new, gap, ended a",
     NULL},

    /* any name */
    {"it is found under any name",
     {{"kept.txt", 'a', 110, 60}, {LOG, 'b', 9, 0}},
     {{'a', 100, FOLLOWED}},
     "rotated kept.txt from 100",
     NULL},
    {"and ends",
     {{"kept.txt", 'a', 100, 60}, {LOG, 'b', 9, 0}},
     {{'a', 100, FOLLOWED}},
     "log new, ended a",
     NULL},
    {"files after it are read",
     {{"kept.txt", 'a', 100, 60}, {"access.log.1", 'b', 9, 30}, {LOG, 'c', 9, 0}},
     {{'a', 100, FOLLOWED}},
     "rotated access.log.1 new, ended a",
     NULL},
    {"files before it are history",
     {{"kept.txt", 'a', 100, 60}, {"access.log.1", 'b', 9, 90}, {LOG, 'c', 9, 0}},
     {{'a', 100, FOLLOWED}},
     "log new, ended a",
     NULL},
    {"files between are history if one after them is known",
     {{"kept.txt", 'a', 9, 60}, {"access.log.2", 'c', 9, 35}, {"access.log.1", 'b', 9, 30}, {LOG, 'd', 9, 0}},
     {{'a', 9, FOLLOWED}, {'b', 9, ENDED}},
     "log new, ended a",
     NULL},
    {"it has its place before all others: a newer name is newer",
     {{"kept.txt", 'a', 9, 60}, {"access.log.2", 'b', 9, 40}, {"access.log.1", 'c', 9, 45}, {LOG, 'd', 9, 0}},
     {{'a', 9, FOLLOWED}, {'b', 9, ENDED}},
     "rotated access.log.1 new, ended a",
     NULL},
    {"also in olddir",
     {{"old/kept.txt", 'a', 110, 60}, {LOG, 'b', 9, 0}},
     {{'a', 100, FOLLOWED}},
     "rotated old/kept.txt from 100",
     "old"},
    {"rotated files are found in olddir",
     {{"old/access.log.2", 'a', 100, 60}, {"old/access.log.1", 'b', 9, 30}, {LOG, 'c', 9, 0}},
     {{'a', 100, FOLLOWED}},
     "rotated old/access.log.1 new, ended a",
     "old"},

    /* changed */
    {"a log that has other bytes before the position",
     {{LOG, 'Q', 200, 0}},
     {{'P', 150, FOLLOWED}},
     "changed P",
     NULL},
    {"a log that is shorter", {{LOG, 'P', 120, 0}}, {{'P', 150, FOLLOWED}}, "changed P", NULL},
    {"also after an import", {{LOG, 'P', 120, 0}}, {{'P', 150, IMPORTED}}, "changed P", NULL},
    {"not if the file ended", {{LOG, 'Q', 200, 0}}, {{'P', 150, ENDED}}, "log new", NULL},
    {"not if the file is found",
     {{"access.log.1", 'P', 150, 60}, {LOG, 'Q', 120, 0}},
     {{'P', 150, FOLLOWED}},
     "log new, ended P",
     NULL},
    {"and not if it is found under any name",
     {{"kept.txt", 'P', 150, 60}, {LOG, 'Q', 120, 0}},
     {{'P', 150, FOLLOWED}},
     "log new, ended P",
     NULL},

    /* copies */
    {"a copy beside the log, which is not truncated yet",
     {{"access.log.1", 'a', 110, 0}, {LOG, 'a', 110, 0}},
     {{'a', 100, FOLLOWED}},
     "log from 100",
     NULL},
    {"a copy that misses its end",
     {{"access.log.1", 'a', 120, 60}, {LOG, 'b', 9, 0}},
     {{'a', 150, FOLLOWED}},
     "log new, ended a",
     NULL},
    {"a packed copy",
     {{"access.log.1.gz", 'a', 150, 60}, {LOG, 'b', 9, 0}},
     {{'a', 150, FOLLOWED}},
     "log new, ended a",
     NULL},
    {"a packed copy of a short file",
     {{"access.log.1.gz", 'a', 9, 60}, {LOG, 'b', 9, 0}},
     {{'a', 9, FOLLOWED}},
     "log new, ended a",
     NULL},
    {"a packed copy that has more",
     {{"access.log.1.gz", 'a', 150, 60}, {LOG, 'b', 9, 0}},
     {{'a', 100, FOLLOWED}},
     "rotated access.log.1.gz from 100",
     NULL},
    {"a young file that has grown since",
     {{"access.log.1", 'a', 150, 60}, {LOG, 'b', 9, 0}},
     {{'a', 110, FOLLOWED, .seen = 1}},
     "rotated access.log.1 from 110",
     NULL},

    /* files that begin alike */
    {"two files continue a header: the log is another file",
     {{"access.log.1", 'p', 9, 60}, {LOG, 'q', 9, 0}},
     {{'p', HEADER_LINES, FOLLOWED}},
     "rotated access.log.1 from 2",
     NULL},
    {"a log that only begins as the file did when it was first seen is another file",
     {{LOG, 'q', 9, 0}},
     {{'p', 9, FOLLOWED, .seen = HEADER_LINES}},
     "lost p",
     NULL},
    {"two rotated files continue a header: the newer one is another file",
     {{"access.log.2", 'p', 9, 55}, {"access.log.1", 'q', 9, 60}, {LOG, 'c', 9, 0}},
     {{'p', HEADER_LINES, FOLLOWED}},
     "rotated access.log.1 new",
     NULL},
    {"more of the head is known than the header",
     {{"access.log.1", 'p', 9, 60}, {LOG, 'q', 20, 0}},
     {{'p', 9, FOLLOWED, .seen = HEADER_LINES}},
     "log new, ended p",
     NULL},

    /* other logs */
    {"another log's position is not this one's",
     {{"access.log.7", 'a', 9, 0}, {LOG, 'a', 20, 0}},
     {{'a', 9, FOLLOWED, .label = "access.log.7"}},
     "log new",
     NULL},
    {"but it is if that log was renamed to this one",
     {{LOG, 'a', 20, 0}},
     {{'a', 9, FOLLOWED, .label = "access.log.7"}},
     "log from 9",
     NULL},
    {"but an imported file's is",
     {{LOG, 'a', 20, 0}},
     {{'a', 9, IMPORTED, .label = "access.log.8"}},
     "log from 9",
     NULL},
    {"another log is no rotated file",
     {{"access.log.7", 'b', 9, 30}, {"access.log.1", 'a', 9, 60}, {LOG, 'c', 9, 0}},
     {{'a', 9, FOLLOWED}},
     "log new, ended a",
     NULL},
};

static void lay_out(struct rotating *k, const struct place *files, const struct counted *known)
{
    for (; files->name != NULL; files++)
        rotating_put(k, *files);
    for (; known->content != '\0'; known++)
        rotating_apply(k, *known);
}

static void test_rows(void **state)
{
    (void)state;
    struct rotating k;
    size_t wrong = 0;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        rotating_begin(&k);
        assert_int_equal(mkdir(scratch_path(&k.scratch, "old"), 0700), 0);
        k.log.olddir = rows[i].olddir;
        lay_out(&k, rows[i].files, rows[i].known);
        const char *answer = rotating_ask(&k, rows[i].known);
        if (strcmp(answer, rows[i].answer) != 0) {
            print_error("%s:\n  \"%s\" instead of \"%s\"\n", rows[i].rule, answer, rows[i].answer);
            wrong++;
        }
        rotating_end(&k);
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
