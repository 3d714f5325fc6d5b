/* The offset at which a partition goes on: known, new, re-created, with lost records; and what each
 * incarnation is called. */
#include "daemon/topic/topic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct topic topic_of(struct partition *p)
{
    struct topic t = {.name = "access", .incarnation = 1, .partitions = p, .count = 1};
    strcpy(t.source, "kafka:access");
    return t;
}

/* As a store has it that knows only the last record, or not even that. */
static void place(struct partition *p, int64_t next, uint32_t tail_len)
{
    const struct range r = {.to = next, .tail_hash = 7, .tail_len = tail_len};
    partition_place(p, &r);
}

static void test_new_partition_begins_where_it_is_told(void **state)
{
    struct partition p = {0};
    struct topic t = topic_of(&p);
    struct err e = {0};
    bool recreated;
    (void)state;
    p.topic = &t;
    assert_true(partition_begin(&p, 10, 500, 300, &recreated, &e));
    assert_int_equal(p.next, 300);
    assert_false(p.check_tail);
    t.is_known = true; /* of a topic that is known, from its beginning: `start` was for the others */
    assert_true(partition_begin(&p, 10, 500, 300, &recreated, &e));
    assert_int_equal(p.next, 10);
}

static void test_known_partition_goes_on_and_compares(void **state)
{
    struct partition p = {0};
    struct topic t = topic_of(&p);
    struct err e = {0};
    bool recreated;
    place(&p, 400, 1);
    (void)state;
    p.topic = &t;
    assert_true(partition_begin(&p, 0, 500, 0, &recreated, &e));
    assert_int_equal(p.next, 400);
    assert_true(p.check_tail);
    assert_true(partition_begin(&p, 400, 500, 0, &recreated, &e)); /* expired, but nothing is lost */
    assert_false(p.check_tail);
    assert_true(partition_begin(&p, 0, 400, 0, &recreated, &e)); /* nothing new */
    assert_true(p.check_tail);
    place(&p, 400, 0); /* a first start's position: no record was counted */
    assert_true(partition_begin(&p, 0, 500, 0, &recreated, &e));
    assert_false(p.check_tail);
}

static void test_lost_records_are_refused_until_accepted(void **state)
{
    struct partition p = {.is_known = true, .next = 400, .tail_hash = 7, .tail_len = 3};
    struct topic t = topic_of(&p);
    struct err e = {0};
    struct range r;
    bool recreated;
    (void)state;
    p.topic = &t;
    assert_false(partition_begin(&p, 450, 500, 0, &recreated, &e));
    assert_int_equal(e.code, EX_DATAERR);
    assert_false(recreated);
    assert_non_null(strstr(e.text, "50 offsets"));
    assert_non_null(strstr(e.text, "--accept access"));
    t.is_accepted = true;
    assert_true(partition_begin(&p, 450, 500, 0, &recreated, &e));
    assert_false(p.check_tail);
    assert_int_equal(p.next, 450);
    partition_range(&p, &r); /* so that the store sees its own position continued */
    assert_int_equal(r.from, 400);
    assert_int_equal(r.to, 450);
}

static void test_shorter_topic_was_recreated(void **state)
{
    struct partition p = {.is_known = true, .next = 400, .tail_hash = 7, .tail_len = 3};
    struct topic t = topic_of(&p);
    struct err e = {0};
    struct range r;
    bool recreated;
    (void)state;
    p.topic = &t;
    assert_false(partition_begin(&p, 0, 399, 0, &recreated, &e));
    assert_int_equal(e.code, EX_DATAERR);
    assert_true(recreated);
    topic_renew(&t);
    assert_string_equal(t.source, "kafka:access~2");
    assert_true(partition_begin(&p, 5, 399, 399, &recreated, &e));
    assert_int_equal(p.next, 5);
    partition_range(&p, &r);
    assert_string_equal(r.source, "kafka:access~2");
    assert_string_equal(r.partition, "0");
    assert_int_equal(r.from, 5);
    assert_int_equal(r.to, 5);
    topic_renew(&t);
    assert_string_equal(t.source, "kafka:access~3");
}

static void test_witnesses_before_the_first_offset_are_not_asked(void **state)
{
    struct partition p = {0};
    struct topic t = topic_of(&p);
    struct err e = {0};
    struct range r = {.to = 400, .tail_hash = 7, .tail_len = 3};
    bool recreated;
    (void)state;
    for (int64_t at = 100; at < 400; at += 100)
        witnesses_add(&r.witnesses, at, 1);
    p.topic = &t;
    partition_place(&p, &r);
    assert_int_equal(p.witnesses.count, 4); /* the last record of an older version, too */
    assert_int_equal(witnesses_newest(&p.witnesses)->offset, 397);
    assert_true(partition_begin(&p, 150, 500, 0, &recreated, &e));
    assert_true(p.check_tail);
    assert_int_equal(p.first_witness, 1);
    assert_true(partition_begin(&p, 398, 500, 0, &recreated, &e));
    assert_false(p.check_tail);
    partition_range(&p, &r);
    assert_int_equal(r.witnesses.count, 4);
    r.to = 200; /* a position that no version writes */
    r.tail_len = 0;
    partition_place(&p, &r);
    assert_int_equal(p.witnesses.count, 1);
}

static void test_words_of_accept(void **state)
{
    (void)state;
    assert_int_equal(topic_accepts("access", "access"), ACCEPT_TOPIC);
    assert_int_equal(topic_accepts("access", "access~"), ACCEPT_RENEWED);
    assert_int_equal(topic_accepts("access", "access~2"), ACCEPT_NOT);
    assert_int_equal(topic_accepts("access", "acces"), ACCEPT_NOT);
    assert_int_equal(topic_accepts("access", "other"), ACCEPT_NOT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_new_partition_begins_where_it_is_told),
        cmocka_unit_test(test_known_partition_goes_on_and_compares),
        cmocka_unit_test(test_lost_records_are_refused_until_accepted),
        cmocka_unit_test(test_shorter_topic_was_recreated),
        cmocka_unit_test(test_witnesses_before_the_first_offset_are_not_asked),
        cmocka_unit_test(test_words_of_accept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
