/* The file that survey.h names next, and its memory from one answer to the next. */
#include "base/check.h"
#include "tests/support/rotating.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* The linker has calls of open(2) come here (--wrap): from the open_fails_at-th on, if not 0, they fail. */
static int open_fails_at, opened, open_fails_with;

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    int fd = __real_open(path, flags, (flags & O_CREAT) != 0 ? va_arg(more, int) : 0);
    va_end(more);
    if (open_fails_at == 0 || ++opened < open_fails_at)
        return fd;
    close(fd);
    errno = open_fails_with;
    return -1;
}

static int setup(void **state)
{
    *state = malloc(sizeof(struct rotating));
    rotating_begin(*state);
    return 0;
}

static int teardown(void **state)
{
    open_fails_at = 0;
    rotating_end(*state);
    free(*state);
    return 0;
}

static void expect(struct rotating *k, const struct counted *known, const char *answer)
{
    assert_string_equal(rotating_ask(k, known), answer);
}

static void test_a_new_file_is_named_and_followed(void **state)
{
    struct rotating *k = *state;
    char first[IDENTITY_TEXT_BYTES], third[IDENTITY_TEXT_BYTES + 2];
    const struct place log = {LOG, 'P', 120, 0};
    const struct counted known = {'P', 110, ENDED};
    rotating_put(k, log);
    expect(k, &known, "log new");
    assert_int_equal(k->answer.range.state, RANGE_FOLLOWED + HOST * KNOWN_HOST);
    assert_int_equal(k->answer.range.to, 0);
    identity_print(rotating_identity('P', 120), first);
    assert_string_equal(k->answer.range.source, first);
    assert_int_equal(k->answer.head.len, IDENTITY_PREFIX_BYTES_MAX);
    /* Two have the name, and neither is this file. */
    rotating_apply(k, (struct counted){'Q', 150, ENDED, .seen = 110});
    expect(k, &known, "log new");
    snprintf(third, sizeof third, "%s~2", first);
    assert_string_equal(k->answer.range.source, third);
    /* Another log has opened a file of this name, and nothing of it is stored yet. */
    snprintf(k->open_name, sizeof k->open_name, "%s", third);
    expect(k, &known, "log new");
    snprintf(third, sizeof third, "%s~3", first);
    assert_string_equal(k->answer.range.source, third);
}

static void test_a_known_file_keeps_its_name_and_is_followed(void **state)
{
    struct rotating *k = *state;
    char id[IDENTITY_TEXT_BYTES];
    const struct place log = {LOG, 'a', 20, 0};
    const struct counted known = {'a', 9, IMPORTED, .label = "access.log.8"};
    rotating_put(k, log);
    rotating_apply(k, known);
    expect(k, &known, "log from 9");
    assert_string_equal(k->answer.range.source, identity_print(rotating_identity('a', 9), id));
    assert_int_equal(k->answer.range.state, RANGE_FOLLOWED + HOST * KNOWN_HOST);
    assert_non_null(strstr(k->answer.note, "was counted before as "));
    assert_non_null(strstr(k->answer.note, "access.log.8"));
}

static void test_a_source_that_another_log_reads_is_a_new_one_here(void **state)
{
    struct rotating *k = *state;
    char id[IDENTITY_TEXT_BYTES], second[IDENTITY_TEXT_BYTES + 2];
    const struct counted known[] = {{'a', 9, FOLLOWED}, {0}};
    rotating_put(k, (struct place){LOG, 'a', 9, 0});
    rotating_apply(k, known[0]);
    expect(k, known, "log from 9");
    snprintf(k->read_name, sizeof k->read_name, "%s", identity_print(rotating_identity('a', 9), id));
    expect(k, known, "lost a");
    survey_note_end(&k->survey, k->read_name, RANGE_LOST);
    expect(k, known, "log new, lost a");
    snprintf(second, sizeof second, "%s~2", id);
    assert_string_equal(k->answer.range.source, second);
}

static void test_another_hosts_file_is_taken_over(void **state)
{
    struct rotating *k = *state;
    const struct place log = {LOG, 'a', 200, 0};
    const struct counted known = {'a', 150, .state = RANGE_FOLLOWED, .host = HOST + 1};
    rotating_put(k, log);
    rotating_apply(k, known);
    expect(k, &known, "log from 150");
    assert_int_equal(k->answer.range.state, RANGE_FOLLOWED + HOST * KNOWN_HOST);
}

static void test_a_followed_file_has_no_news(void **state)
{
    struct rotating *k = *state;
    const struct place log = {LOG, 'a', 20, 0};
    const struct counted known = {'a', 9, FOLLOWED};
    rotating_put(k, log);
    rotating_apply(k, known);
    expect(k, &known, "log from 9");
    assert_int_equal(k->answer.range.state, RANGE_UNCHANGED);
    assert_string_equal(k->answer.note, "");
}

static void test_nobody_writes_to_a_file_that_is_packed_or_has_a_successor(void **state)
{
    struct rotating *k = *state;
    const struct place files[] = {
        {"access.log.2", 'b', 9, 60}, {"access.log.1", 'c', 9, 30}, {LOG, 'd', 9, 0}};
    const struct counted known[] = {{'a', 9, ENDED, .age_min = 180}, {'b', 9, ENDED}, {0}};
    for (size_t i = 0; i < COUNT_OF(files); i++)
        rotating_put(k, files[i]);
    rotating_apply(k, known[0]);
    expect(k, known, "rotated access.log.2 new");
    assert_true(k->answer.is_final);
    rotating_apply(k, known[1]);
    expect(k, known, "rotated access.log.1 new");
    assert_false(k->answer.is_final);
    assert_int_equal(unlink(scratch_path(&k->scratch, "access.log.1")), 0);
    rotating_put(k, (struct place){"access.log.1.gz", 'c', 9, 30});
    expect(k, known, "rotated access.log.1.gz new");
    assert_true(k->answer.is_final);
}

static void test_a_change_is_told_with_its_reason(void **state)
{
    struct rotating *k = *state;
    const struct counted known[] = {{'P', 150, FOLLOWED}, {0}};
    rotating_apply(k, known[0]);
    rotating_put(k, (struct place){LOG, 'P', 120, 0});
    expect(k, known, "changed P");
    assert_int_equal(k->answer.why.code, EX_DATAERR);
    assert_non_null(strstr(k->answer.why.text, "is shorter"));
    assert_non_null(strstr(k->answer.why.text, "7500 bytes"));
    rotating_put(k, (struct place){LOG, 'Q', 200, 0});
    expect(k, known, "changed P");
    assert_non_null(strstr(k->answer.why.text, "has other bytes"));
    assert_non_null(strstr(k->answer.why.text, k->path));
    survey_note_end(&k->survey, k->answer.range.source, RANGE_LOST);
    expect(k, known, "log new, lost P");
}

/* An unfinished line is no reason to read the file again, until it grows. */
static void test_an_unfinished_line_is_read_once(void **state)
{
    struct rotating *k = *state;
    const struct counted known[] = {{'a', 9, FOLLOWED}, {0}};
    const char *rotated = scratch_path(&k->scratch, "access.log.1");
    rotating_apply(k, known[0]);
    rotating_put(k, (struct place){"access.log.1", 'a', 9, 60});
    rotating_put(k, (struct place){LOG, 'b', 9, 0});
    scratch_append(rotated, slice_text("no line yet"));
    expect(k, known, "rotated access.log.1 from 9");
    survey_note_done(&k->survey, &k->answer, 9 * LINE_BYTES + 11);
    expect(k, known, "log new, ended a");
    scratch_append(rotated, slice_text(", but now\n"));
    expect(k, known, "rotated access.log.1 from 9");
    survey_note_done(&k->survey, &k->answer, 9 * LINE_BYTES + 21);
    expect(k, known, "log new, ended a");
    /* Another file of the same size is read. */
    rotating_put(k, (struct place){"access.log.2", 'c', 9, 30});
    scratch_append(scratch_path(&k->scratch, "access.log.2"), slice_text("no line yet, but now\n"));
    expect(k, known, "rotated access.log.2 new, ended a");
}

/* If two files continue a header, the one of which only the header was read is the known one. */
static void test_a_file_that_was_read_to_its_end_is_the_known_one(void **state)
{
    struct rotating *k = *state;
    const struct counted known[] = {{'q', HEADER_LINES, FOLLOWED}, {0}};
    rotating_apply(k, known[0]);
    rotating_put(k, (struct place){"access.log.1", 'q', HEADER_LINES, 30});
    scratch_append(scratch_path(&k->scratch, "access.log.1"), slice_text("no line yet"));
    rotating_put(k, (struct place){LOG, 'b', 9, 0});
    expect(k, known, "rotated access.log.1 from 2");
    survey_note_done(&k->survey, &k->answer, HEADER_LINES * LINE_BYTES + 11);
    rotating_put(k, (struct place){"access.log.2", 'p', 9, 60});
    expect(k, known, "log new, ended q");
}

static void test_an_end_is_remembered_until_the_store_has_it(void **state)
{
    struct rotating *k = *state;
    struct counted known[] = {{'a', 9, FOLLOWED}, {0}};
    rotating_apply(k, known[0]);
    rotating_put(k, (struct place){LOG, 'b', 9, 0});
    expect(k, known, "lost a");
    survey_note_end(&k->survey, k->answer.range.source, RANGE_LOST);
    expect(k, known, "log new, lost a");
    rotating_put(k, (struct place){LOG, 'b', 0, 0});
    expect(k, known, "nothing, lost a");
    rotating_put(k, (struct place){"access.log.1", 'a', 9, 60});
    expect(k, known, "nothing"); /* it shows where to look on */
    assert_int_equal(k->survey.end_count, 1);
    rotating_forget(k);
    known[0].state = RANGE_LOST;
    rotating_apply(k, known[0]);
    expect(k, known, "nothing");
    assert_int_equal(k->survey.end_count, 0);
}

static void test_a_file_that_was_read_to_its_end_may_go(void **state)
{
    struct rotating *k = *state;
    char id[IDENTITY_TEXT_BYTES];
    const struct counted known[] = {{'a', 9, FOLLOWED}, {0}};
    rotating_apply(k, known[0]);
    rotating_put(k, (struct place){LOG, 'b', 9, 0});
    survey_note_end(&k->survey, identity_print(rotating_identity('a', 9), id), RANGE_ENDED);
    expect(k, known, "log new, ended a");
    survey_note_end(&k->survey, id, RANGE_LOST);
    expect(k, known, "log new, lost a");
}

/* Rotated twice, and deleted: only an open descriptor leads to it. */
static void test_a_held_file_is_read_in_its_turn(void **state)
{
    struct rotating *k = *state;
    const struct counted known[] = {{'a', 9, FOLLOWED}, {'b', 9, ENDED}, {'c', 9, ENDED}, {0}};
    const struct timespec held_at = {.tv_sec = NOW_MS / 1000 - 60 * 60};
    rotating_apply(k, known[0]);
    rotating_put(k, (struct place){"access.log.2", 'a', 9, 90});
    rotating_put(k, (struct place){"held", 'b', 9, 60});
    rotating_put(k, (struct place){"access.log.1", 'c', 9, 30});
    rotating_put(k, (struct place){LOG, 'd', 9, 0});
    expect(k, known, "rotated access.log.1 new, ended a");
    k->log.held_fd = open(scratch_path(&k->scratch, "held"), O_RDONLY);
    assert_int_equal(rename(scratch_path(&k->scratch, "held"), scratch_path(&k->scratch, "access.log.8")), 0);
    expect(k, known, "rotated access.log.8 new, ended a"); /* it is listed */
    rotating_set_age(scratch_path(&k->scratch, "access.log.8"), 95);
    assert_int_equal(unlink(scratch_path(&k->scratch, "access.log.8")), 0);
    expect(k, known, "rotated access.log.1 new, ended a"); /* it is older than the known one */
    assert_int_equal(futimens(k->log.held_fd, (struct timespec[2]){held_at, held_at}), 0);
    expect(k, known, "rotated held new, ended a");
    rotating_put(k, (struct place){"access.log.8.gz", 'b', 9, 45});
    expect(k, known, "rotated access.log.8.gz new, ended a");
    assert_int_equal(unlink(scratch_path(&k->scratch, "access.log.8.gz")), 0);
    rotating_apply(k, known[1]);
    expect(k, known, "rotated access.log.1 new, ended a");
    close(k->log.held_fd);
    rotating_apply(k, known[2]);
    k->log.held_fd = open(k->path, O_RDONLY);
    expect(k, known, "log new, ended a");
    close(k->log.held_fd);
}

/* Only the file that had its place first is known to have come next. */
static void test_a_held_file_is_next_to_the_one_that_was_read(void **state)
{
    struct rotating *k = *state;
    const struct counted known[] = {{'a', 9, READ, .age_min = 180}, {'b', 9, ENDED}, {0}};
    rotating_apply(k, known[0]);
    rotating_put(k, (struct place){"held", 'b', 9, 60});
    rotating_put(k, (struct place){"access.log.2", 'x', 0, 50});
    rotating_put(k, (struct place){"access.log.1", 'c', 9, 30});
    rotating_put(k, (struct place){LOG, 'd', 9, 0});
    expect(k, known, "rotated access.log.1 new, gap, ended a");
    k->log.held_fd = open(scratch_path(&k->scratch, "held"), O_RDONLY);
    assert_int_equal(unlink(scratch_path(&k->scratch, "held")), 0);
    expect(k, known, "rotated held new, gap, ended a"); /* the log was rotated more than once before */
    k->log.is_held_next = true;
    expect(k, known, "rotated held new, ended a");
    rotating_forget(k);
    rotating_apply(k, (struct counted){'b', 9, READ, .age_min = 180});
    expect(k, known, "rotated access.log.1 new, gap, ended b"); /* it has no name any more */
    close(k->log.held_fd);
    rotating_put(k, (struct place){"held", 'e', 9, 20}); /* newer */
    k->log.held_fd = open(scratch_path(&k->scratch, "held"), O_RDONLY);
    expect(k, known, "rotated access.log.1 new, gap, ended b");
    close(k->log.held_fd);
}

static bool came_next(struct rotating *k, const char *read, int lines)
{
    struct err e;
    struct input *in = input_open(scratch_path(&k->scratch, read), &e);
    bool came = survey_came_next(k->path, NULL, in, rotating_identity('a', lines));
    input_close(in);
    return came;
}

static void test_a_file_came_next_if_the_one_that_was_read_is_the_newest_rotated(void **state)
{
    struct rotating *k = *state;
    rotating_put(k, (struct place){LOG, 'd', 9, 0});
    rotating_put(k, (struct place){"read", 'a', 9, 30});
    assert_true(came_next(k, "read", 9)); /* rotation leaves nothing */
    rotating_put(k, (struct place){"access.log.1", 'b', 9, 60});
    assert_true(came_next(k, "read", 9)); /* rotation moves files elsewhere */
    struct err e;
    struct input *in = input_open(scratch_path(&k->scratch, "read"), &e);
    assert_int_equal(unlink(scratch_path(&k->scratch, "read")), 0);
    assert_false(survey_came_next(k->path, NULL, in, rotating_identity('a', 9)));
    rotating_put(k, (struct place){"access.log.1.gz", 'a', 9, 60}); /* b is still being packed, perhaps */
    assert_false(survey_came_next(k->path, NULL, in, rotating_identity('a', 9)));
    assert_int_equal(unlink(scratch_path(&k->scratch, "access.log.1")), 0);
    assert_true(survey_came_next(k->path, NULL, in, rotating_identity('a', 9)));
    assert_false(survey_came_next(k->path, NULL, in, rotating_identity('c', 9)));
    assert_false(survey_came_next(k->path, "gone", in, rotating_identity('a', 9)));
    input_close(in);
    assert_int_equal(unlink(scratch_path(&k->scratch, "access.log.1.gz")), 0);
    rotating_put(k, (struct place){"access.log.2", 'a', 9, 60});
    assert_false(came_next(k, "access.log.2", 9)); /* its number says that there was another one */
    assert_int_equal(
        rename(scratch_path(&k->scratch, "access.log.2"), scratch_path(&k->scratch, "access.log-20261123")),
        0);
    assert_true(came_next(k, "access.log-20261123", 9));
    rotating_put(k, (struct place){"access.log-20261124", 'b', 9, 90});
    assert_false(came_next(k, "access.log-20261123", 9));
}

/* Its time is its place among the others. */
static void test_a_held_file_that_begins_as_an_older_one_is_another(void **state)
{
    struct rotating *k = *state;
    const struct counted known[] = {{'p', HEADER_LINES, FOLLOWED}, {0}};
    rotating_apply(k, known[0]);
    rotating_put(k, (struct place){"access.log.2", 'z', 9, 90});
    rotating_put(k, (struct place){"access.log.1", 'p', 9, 60});
    rotating_put(k, (struct place){"held", 'q', 9, 30});
    rotating_put(k, (struct place){LOG, 'c', 9, 0});
    k->log.held_fd = open(scratch_path(&k->scratch, "held"), O_RDONLY);
    assert_int_equal(unlink(scratch_path(&k->scratch, "held")), 0);
    expect(k, known, "rotated access.log.1 from 2");
    rotating_set_age(scratch_path(&k->scratch, "access.log.1"), 10);
    expect(k, known, "rotated held from 2");
    close(k->log.held_fd);
}

static void test_a_log_that_is_read_is_the_known_file(void **state)
{
    struct rotating *k = *state;
    struct err e;
    const struct counted known[] = {{'p', HEADER_LINES, FOLLOWED}, {0}};
    rotating_apply(k, known[0]);
    rotating_put(k, (struct place){"access.log.1", 'p', 9, 0});
    rotating_put(k, (struct place){LOG, 'q', HEADER_LINES, 0});
    struct input *in = input_open(k->path, &e);
    expect(k, known, "rotated access.log.1 from 2, gap");
    k->log.input = in;
    expect(k, known, "log from 2");
    input_close(in);
}

/* Its size tells nothing, and a rotated one has no name of a packed file. */
static void test_a_packed_log_goes_on(void **state)
{
    struct rotating *k = *state;
    const struct counted known[] = {{'a', 150, FOLLOWED}, {0}};
    snprintf(k->path, sizeof k->path, "%s", scratch_path(&k->scratch, "access.log.gz"));
    rotating_apply(k, known[0]);
    rotating_put(k, (struct place){"access.log.gz", 'a', 200, 0});
    expect(k, known, "log from 150");
    rotating_put(k, (struct place){"access.log.gz.1", 'a', 150, 60});
    rotating_put(k, (struct place){"access.log.gz", 'b', 9, 0});
    expect(k, known, "log new, ended a");
}

static void test_files_that_cannot_be_read_are_numbered(void **state)
{
    struct rotating *k = *state;
    const struct counted known[] = {{0}};
    rotating_put(k, (struct place){LOG, 'b', 9, 0});
    expect(k, known, "log new");
    assert_int_equal(k->answer.unreadable, 0);
    scratch_write(scratch_path(&k->scratch, "access.log.1.gz"), slice_of("\x1f\x8b\x08", 3));
    scratch_write(scratch_path(&k->scratch, "access.log.2.gz"), slice_of("\x1f\x8b\x08", 3));
    expect(k, known, "log new");
    assert_int_equal(k->answer.unreadable, 2);
    assert_non_null(strstr(k->answer.why.text, "access.log.2.gz")); /* the first one, the oldest */
}

/* A look fails that cannot open one of the files now: it is there, and may be a known one. */
static void test_a_file_that_cannot_be_opened_now_is_an_error(void **state)
{
    struct rotating *k = *state;
    struct err e = {0};
    const struct counted known[] = {{'a', 150, FOLLOWED}, {0}};
    rotating_apply(k, known[0]);
    rotating_put(k, (struct place){"access.log.1", 'a', 200, 60});
    rotating_put(k, (struct place){LOG, 'b', 9, 0});
    expect(k, known, "rotated access.log.1 from 150");
    open_fails_with = EMFILE;
    open_fails_at = 1;
    for (bool good = false; !good; open_fails_at++) {
        opened = 0;
        survey_answer_fini(&k->answer);
        good = survey_look(&k->survey, &k->log, &k->known, &k->answer, &e);
        assert_int_equal(good, opened < open_fails_at);
        assert_true(good || (e.code == EX_IOERR && e.retryable));
    }
    assert_int_equal(open_fails_at, 5); /* both are opened, and the known one once more */
    open_fails_at = 0;
}

static void test_a_folder_that_is_gone_is_an_error(void **state)
{
    struct rotating *k = *state;
    struct err e = {0};
    assert_true(known_read(&k->known, k->store, &e));
    k->log.olddir = "gone";
    assert_false(survey_look(&k->survey, &k->log, &k->known, &k->answer, &e));
    assert_int_equal(e.code, EX_NOINPUT);
}

static void test_a_file_that_came_since_the_begin_is_no_history(void **state)
{
    struct rotating *k = *state;
    const struct counted known[] = {{'a', 100, FOLLOWED}, {.content = 0}};
    rotating_apply(k, known[0]);
    rotating_put(k, (struct place){LOG, 'c', 0, 0});
    rotating_put(k, (struct place){"access.log-20261124", 'a', 100, 20});
    rotating_put(k, (struct place){"access.log-20261123", 'b', 30, 40});
    expect(k, known, "nothing");
    k->log.begun_ns = (NOW_MS - 30 * MINUTE_MS) * 1000000;
    expect(k, known, "nothing");
    k->log.begun_ns = (NOW_MS - 60 * MINUTE_MS) * 1000000;
    expect(k, known, "rotated access.log-20261123 new, ended a");
    /* It may be a copy that is still written. */
    rotating_put(k, (struct place){"access.log-20261123", 'a', 30, 40});
    expect(k, known, "nothing");
}

static void test_a_number_is_missing_behind_a_copy(void **state)
{
    struct rotating *k = *state;
    const struct counted known[] = {{'a', 9, FOLLOWED}, {.content = 0}};
    rotating_apply(k, known[0]);
    rotating_put(k, (struct place){"access.log.2", 'b', 0, 0});
    rotating_put(k, (struct place){"access.log_copy", 'a', 9, 60});
    expect(k, known, "lost a");
    rotating_put(k, (struct place){"access.log.1", 'b', 0, 0});
    expect(k, known, "nothing");
    assert_int_equal(unlink(scratch_path(&k->scratch, "access.log.1")), 0);
    rotating_put(k, (struct place){"access.log.2", 'b', 0, 180});
    expect(k, known, "nothing"); /* it was so before the last batch */
}

static void test_a_number_is_missing_behind_a_header(void **state)
{
    struct rotating *k = *state;
    const struct counted known[] = {{'p', HEADER_LINES, FOLLOWED}, {.content = 0}};
    rotating_apply(k, known[0]);
    rotating_put(k, (struct place){LOG, 'q', 90, 0});
    expect(k, known, "log from 2");
    rotating_put(k, (struct place){"access.log.2", 'b', 0, 0});
    expect(k, known, "log from 2, gap");
    rotating_put(k, (struct place){"access.log.1", 'b', 0, 0});
    expect(k, known, "log from 2");
}

/* Only a header was counted, and copies of it are there, but the oldest file is empty. */
static void test_an_empty_file_before_copies_of_a_header_proves_nothing(void **state)
{
    struct rotating *k = *state;
    const struct counted known[] = {{'p', HEADER_LINES, FOLLOWED}, {.content = 0}};
    rotating_apply(k, known[0]);
    rotating_put(k, (struct place){LOG, 'q', 90, 0});
    rotating_put(k, (struct place){"access.log.1", 'p', HEADER_LINES, 0});
    rotating_put(k, (struct place){"access.log.2", 'p', HEADER_LINES, 0});
    expect(k, known, "log from 2, gap");
    rotating_put(k, (struct place){"access.log.3", 'b', 0, 0});
    expect(k, known, "log from 2, gap");
    rotating_put(k, (struct place){"access.log.3", 'b', 0, 180});
    expect(k, known, "log from 2"); /* it was there before: nothing was deleted since */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_new_file_is_named_and_followed),
        TEST(test_a_known_file_keeps_its_name_and_is_followed),
        TEST(test_a_source_that_another_log_reads_is_a_new_one_here),
        TEST(test_another_hosts_file_is_taken_over),
        TEST(test_a_followed_file_has_no_news),
        TEST(test_nobody_writes_to_a_file_that_is_packed_or_has_a_successor),
        TEST(test_a_change_is_told_with_its_reason),
        TEST(test_an_unfinished_line_is_read_once),
        TEST(test_a_file_that_was_read_to_its_end_is_the_known_one),
        TEST(test_an_end_is_remembered_until_the_store_has_it),
        TEST(test_a_file_that_was_read_to_its_end_may_go),
        TEST(test_a_held_file_is_read_in_its_turn),
        TEST(test_a_held_file_is_next_to_the_one_that_was_read),
        TEST(test_a_file_came_next_if_the_one_that_was_read_is_the_newest_rotated),
        TEST(test_a_held_file_that_begins_as_an_older_one_is_another),
        TEST(test_a_log_that_is_read_is_the_known_file),
        TEST(test_a_file_that_came_since_the_begin_is_no_history),
        TEST(test_a_number_is_missing_behind_a_copy),
        TEST(test_a_number_is_missing_behind_a_header),
        TEST(test_an_empty_file_before_copies_of_a_header_proves_nothing),
        TEST(test_a_packed_log_goes_on),
        TEST(test_files_that_cannot_be_read_are_numbered),
        TEST(test_a_file_that_cannot_be_opened_now_is_an_error),
        TEST(test_a_folder_that_is_gone_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
