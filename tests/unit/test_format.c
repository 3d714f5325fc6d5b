/* Formats of Apache and nginx: what each directive becomes, what is refused, and lines that do not fit. */
#include "base/civil.h"
#include "base/mem.h"
#include "base/text.h"
#include "ingest/decode/clf.h"
#include "ingest/decode/clf_fast.h"
#include "ingest/decode/format_run.h"
#include "ingest/scan.h"
#include "tests/support/dice.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define A       FORMAT_APACHE
#define N       FORMAT_NGINX
#define T       "[10/Oct/2000:13:55:36 -0700]"
#define AT      "2000-10-10T20:55:36.000Z"
#define R       "\"GET /a?b HTTP/1.1\""
#define REQUEST "request=GET /a?b HTTP/1.1 method=GET target=/a?b path=/a protocol=HTTP/1.1"

static void print_event(const struct event *ev, struct text *out)
{
    char iso[CIVIL_ISO_BYTES];
    civil_iso(ev->at_ms - ev->at_ms % 1000, iso);
    text_printf(out, "%.19s.%03dZ", iso, (int)(ev->at_ms % 1000));
    for (int i = 0; i < field_count(); i++) {
        enum field f = (enum field)i;
        if (!event_has(ev, f))
            continue;
        text_printf(out, " %s%s%s=%.*s", field_name(f), event_is_odd(ev, f) ? "~" : "",
                    event_is_odd(ev, f) && (ev->literal >> f & 1) ? "!" : "", SLICE_ARGS(ev->field[f]));
        if (f >= FIELD_COUNT && event_has_number(ev, f))
            text_printf(out, "(%" PRId64 ")", ev->number[f]);
    }
}

/* Decodes a line, in memory of just its size, and prints the event or the reject. */
static void decode_line(struct format_run *run, struct slice line, struct text *out)
{
    struct event ev;
    struct reject why;
    char *copy = xmalloc(line.len > 0 ? line.len : 1);
    memcpy(copy, line.ptr, line.len);
    if (decoder_decode(&run->decoder, slice_of(copy, line.len), &ev, &why))
        print_event(&ev, out);
    else
        text_printf(out, "reject %s %zu", reject_name(why.reason), why.column);
    assert_true(text_slice(out).ptr[0] != 'r' || (why.column >= 1 && why.column <= line.len + 1));
    free(copy);
}

struct row {
    enum format_server server;
    const char *format, *line, *want;
};

static int check_row(const struct row *row)
{
    struct format f;
    struct format_run run;
    struct arena memory;
    struct err e;
    struct text got = {0};
    if (!format_compile(&f, row->server, slice_text(row->format), &e)) {
        print_error("%s\n  %s\n", row->format, e.text);
        return 1;
    }
    arena_init(&memory, 4096);
    format_run_init(&run, &f, &memory);
    decode_line(&run, slice_text(row->line), &got);
    bool same = slice_is(text_slice(&got), row->want);
    if (!same)
        print_error("%s\n%s\nis   %s\nwant %s\n", row->format, row->line, got.ptr, row->want);
    text_fini(&got);
    arena_fini(&memory);
    return same ? 0 : 1;
}

static void check_rows(const struct row *rows, size_t count)
{
    int failed = 0;
    for (size_t i = 0; i < count; i++)
        failed += check_row(&rows[i]);
    assert_int_equal(failed, 0);
}

static void test_format_apache_directives_become_fields(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {A, "%h %l %u %t \"%r\" %>s %b", "h - - " T " " R " 200 12",
         AT " host=h " REQUEST " status=200 bytes=12"},
        {A, "%v %h %l %u %t \"%r\" %>s %O \"%{Referer}i\" \"%{User-Agent}i\" %D",
         "w.example 10.0.0.1 - frank " T " " R " 200 12 \"-\" \"x \\\"y\\\"\" 1234567",
         AT " vhost=w.example host=10.0.0.1 user=frank " REQUEST
            " status=200 bytes=12 agent~=x \\\"y\\\" duration=1.234567(1234567)"},
        {A, "LogFormat \"%v:%p %h %l %u %t \\\"%r\\\" %>s %O\" mine", "[::1]:8080 ::1 - - " T " \"-\" 408 -",
         AT " vhost=[::1] port=8080 host=::1 status=408"},
        {A, "%{X-Forwarded-For}i %l %u %t %>s", "10.0.0.1, 192.168.0.1 - - " T " 200",
         AT " status=200 x_forwarded_for=10.0.0.1, 192.168.0.1"},
        {A, "%{X-Forwarded-For}i %l %u %t %>s", "- - - " T " 200", AT " status=200"},
        {A, "%h %l %u %t", "h - \"\" " T, AT " host=h"},
        {A, "\"%u\" %t", "\"\"\"\" " T, AT},
        {A, "\"%u\" %t", "\"\" " T, AT},
        {A, "%t %p %{local}p %p", T " 80 8080 80", AT " port=80 local_port=8080(8080000000)"},
        {A, "%t %T %D", T " 1 1234567", AT " duration=1.234567(1234567)"},
        {A, "%t %T", T " 17", AT " duration=17(17000000)"},
        {A, "%t %{ms}T", T " 1500", AT " duration=1.5(1500000)"},
        {A, "%t %{us}T %{UNIQUE_ID}e", T " 100 -", AT " duration=0.0001(100)"},
        {A, "%t \"%m %U%q %H\" %s", T " \"GET /a?b HTTP/1.1\" 200", AT " " REQUEST " status=200"},
        {A, "%t %U%q %s", T " /a?b 200", AT " target=/a?b path=/a status=200"},
        {A, "%t %b %I %O", T " 1 2 3", AT " bytes=1 bytes_received=2(2000000) bytes_sent=3(3000000)"},
        {A, "%t %!200,304{X-Test}i\t%k", T " a b\t0", AT " x_test=a b keepalive_requests=0(0)"},
        {A, "%t \"%{Host}i\" %v", T " \"a:80\" w", AT " vhost=w header_host=a:80"},
        {A, "%t \"%{Content-Type}o\" \"%{sid}C\" \"%{X}n\"", T " \"text/html; charset=x\" \"1\" \"\"",
         AT " response_content_type=text/html; charset=x cookie_sid=1(1000000)"},
        {A, "%t %h %{SSL_PROTOCOL}x %{SSL_CIPHER}x \"%r\" %b", T " h TLSv1.2 - " R " -",
         AT " host=h " REQUEST " ssl_ssl_protocol=TLSv1.2"},
        {A, "%s%%%t", "200%" T, AT " status=200"},
    };
    check_rows(rows, COUNT_OF(rows));
}

static void test_format_apache_times_are_read(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {A, "%{%Y-%m-%dT%H:%M:%S%z}t %s", "2000-10-10T13:55:36-0700 200", AT " status=200"},
        {A, "%{sec}t %s", "971211336 200", AT " status=200"},
        {A, "%{msec}t %s", "971211336250 200", "2000-10-10T20:55:36.250Z status=200"},
        {A, "%{usec}t %s", "971211336250999 200", "2000-10-10T20:55:36.250Z status=200"},
        {A, "%{%s}t.%{usec_frac}t %s", "971211336.250999 200", "2000-10-10T20:55:36.250Z status=200"},
        {A, "[%{begin:%d/%b/%Y:%T}t.%{begin:msec_frac}t %{%z}t] %s", "[10/Oct/2000:13:55:36.250 -0700] 200",
         "2000-10-10T20:55:36.250Z status=200"},
        {A, "%{%F %T}t %s", "2000-10-10 20:55:36 200", AT " status=200"},
        {A, "%{%a %b %e %H:%M:%S %Y}t %s", "Tue Oct  3 20:55:36 2000 200",
         "2000-10-03T20:55:36.000Z status=200"},
        {A, "%{%d/%b/%Y:%H:%M:%S %z}t %s", "10/Oct/2000:13:55:36 -0700 200", AT " status=200"},
        {A, "%{%D %R}t %s", "10/10/00 20:55 200", "2000-10-10T20:55:00.000Z status=200"},
        {A, "%{%F %T}t %s", "2000-02-30 20:55:36 200", "reject time_range 1"},
        {A, "%{%F %T}t %s", "2000-10-10 20:55:61 200", "reject time 18"},
        {A, "%{%F %T}t %s", "1969-10-10 20:55:36 200", "reject time_range 1"},
        {A, "%{usec}t %s", "99999999999999999999 200", "reject time 18"},
        {A, "%t", "[10/Oct/2000:13:55:36 -0700", "reject time 28"},
        {A, "%t", "[10/Okt/2000:13:55:36 -0700]", "reject time 5"},
        {N, "$time_local $status", "10/Okt/2000:13:55:36 -0700 200", "reject time 4"},
        {N, "$time_iso8601 $status", "2000-10-10T13:55:36-07:00 200", AT " status=200"},
        {N, "$time_iso8601|$status", "2000-10-10T13:55:36|200", "reject time 1"},
        {N, "$msec $status", "971211336.250 200", "2000-10-10T20:55:36.250Z status=200"},
        {N, "[$time_local] $msec", "[10/Oct/2000:13:55:36 -0700] 971211336.250", "2000-10-10T20:55:36.250Z"},
    };
    check_rows(rows, COUNT_OF(rows));
}

static void test_format_nginx_variables_become_fields(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {N,
         "log_format main '$remote_addr - $remote_user [$time_local] \"$request\" '\n"
         "  '$status $body_bytes_sent \"$http_referer\" '\n \"\\\"$http_user_agent\\\" ${request_time}s\";",
         "10.0.0.1 - - [10/Oct/2000:13:55:36 -0700] " R " 200 12 \"-\" \"a\\x22b\" 0.125s",
         AT " host=10.0.0.1 " REQUEST " status=200 bytes=12 agent~=a\\x22b duration=0.125(125000)"},
        {N, "[$time_local] $upstream_response_time $upstream_addr $status",
         "[10/Oct/2000:13:55:36 -0700] 0.100, 0.020 : - 10.0.0.1:80, 10.0.0.2:80 : unix:/run/a 200",
         AT " status=200 upstream_duration=0.12(120000) upstream_addr=unix:/run/a"},
        {N, "[$time_local] \"$upstream_response_time\" \"$upstream_status\"",
         "[10/Oct/2000:13:55:36 -0700] \"0.120\" \"502, 200\"",
         AT " upstream_duration=0.120(120000) upstream_status=200(200000000)"},
        {N, "[$time_local] $upstream_response_time $upstream_cache_status",
         "[10/Oct/2000:13:55:36 -0700] - HIT", AT " upstream_cache_status=HIT"},
        {N, "$time_iso8601 $host:$server_port $request_method $request_uri $status",
         "2000-10-10T13:55:36-07:00 w.example:443 GET /a?b 200",
         AT " vhost=w.example port=443 method=GET target=/a?b path=/a status=200"},
        {N, "escape=json {\"t\":\"$msec\",\"a\":\"$http_user_agent\",\"r\":\"$request\"}",
         "{\"t\":\"971211336\",\"a\":\"x\\\"\\u0001\\\\y\",\"r\":\"GET /\\\"?b HTTP/1.0\"}",
         AT
         " request=GET /\"?b HTTP/1.0 method=GET target=/\"?b path=/\" protocol=HTTP/1.0 agent~!=x\"\001\\y"},
        {N, "escape=json '$msec \"$http_user_agent\"'", "1 \"a\\q\"", "reject agent 5"},
        {N, "escape=json '$msec \"$http_user_agent\"'", "1 \"a\\u12\"", "reject agent 5"},
        {N, "escape=none '$msec \"$http_user_agent\"'", "1 \"a\\\"", "1970-01-01T00:00:01.000Z agent~!=a\\"},
        {N, "escape=none '$msec \"$http_referer\" \"$http_user_agent\"'", "1 \"a\" \"b\" \"c\"",
         "reject trailing 11"},
        {N, "$msec \"$http_x_forwarded_for\" \"$http_x_request_id\" $bytes_sent $request_length",
         "1 \"a, b\" \"7\" 5 6",
         "1970-01-01T00:00:01.000Z bytes=5 x_forwarded_for=a, b bytes_received=6(6000000) "
         "x_request_id=7(7000000)"},
        {N, "$msec $request_uri", "1 /a?b", "1970-01-01T00:00:01.000Z target=/a?b path=/a"},
        {N,
         "[$time_local] $request_time [$proxy_upstream_name] [$proxy_alternative_upstream_name] "
         "$upstream_addr $upstream_response_length $upstream_response_time $upstream_status $req_id",
         "[10/Oct/2000:13:55:36 -0700] 0.050 [default-web-80] [] 10.0.0.1:80 : 10.0.0.2:80 5 : 7 0.1 : 0.2 "
         "502 : 200 7521",
         AT " duration=0.050(50000) upstream_duration=0.3(300000) upstream_addr=10.0.0.2:80 "
            "upstream_status=200(200000000) proxy_upstream_name=default-web-80 "
            "upstream_response_length=12(12000000) req_id=7521(7521000000)"},
        {N, "[$time_local] [$proxy_upstream_name] $upstream_addr $req_id",
         "[10/Oct/2000:13:55:36 -0700] [] - 7521", AT " req_id=7521(7521000000)"},
    };
    check_rows(rows, COUNT_OF(rows));
}

static void test_format_lines_that_do_not_fit_are_rejected(void **state)
{
    (void)state;
    static const char combined[] = "%h %l %u %t \"%r\" %>s %b \"%{Referer}i\" \"%{User-Agent}i\" %D";
    static const struct row rows[] = {
        {A, combined, "", "reject empty 1"},
        {A, combined, "\r", "reject empty 1"},
        {A, combined, "h", "reject identity 2"},
        {A, combined, "\"10.0.0.1\" - - " T " " R " 200 1 \"-\" \"-\" 5", "reject host 1"},
        {A, combined, "h - - " T " \"GET / HTTP/1.1 200 1", "reject unterminated 36"},
        {A, combined, "h - - " T " " R " 20 1 \"-\" \"-\" 5", "reject status 58"},
        {A, combined, "h - - " T " " R " 200 x \"-\" \"-\" 5", "reject bytes 60"},
        {A, combined, "h - - " T " " R " 200 1 - \"-\" 5", "reject referrer 62"},
        {A, combined, "h - - " T " " R " 200 1 \"-\" - 5", "reject agent 66"},
        {A, combined, "h - - " T " " R " 200 1 \"-\" \"-\"", "reject number 69"},
        {A, combined, "h - - " T " " R " 200 1 \"-\" \"-\" x", "reject number 70"},
        {A, combined, "h - - " T " " R " 200 1 \"-\" \"-\" 5 6", "reject trailing 72"},
        {A, combined, "h - - " T " " R " 200 1 \"-\" \"-", "reject unterminated 66"},
        {A, combined, "h - - " T " " R " 200 1 \"-\" \"-\" 99999999999999999999", "reject number 70"},
        {A, combined, "h - - " T " " R " 200 1 \"-\" \"-\" -  \r",
         AT " host=h " REQUEST " status=200 bytes=1"},
        {A, "%{X-Forwarded-For}i %l %u %t %>s", "10.0.0.1 x - - " T " 200", "reject time 14"},
        {A, "%{X-Forwarded-For}i %l %u %t %>s", "a, b, - - " T " 200", "reject time 33"},
        {N, "$msec $request_uri $status", "1 /a b 200", "reject status 6"},
        {N, "[$time_local] $upstream_response_time $status", "[10/Oct/2000:13:55:36 -0700] 0.1, x 200",
         "reject status 35"},
        {A, "%t \"%r\"", T " \"GET / HTTP/1.0", "reject unterminated 30"},
    };
    check_rows(rows, COUNT_OF(rows));
}

static void test_format_ambiguous_formats_are_refused(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {A, "%h%l %t", "",
         "found \"%l\" in column 3 with nothing between it and \"%h\", expected a separator"},
        {A, "%t %{User-Agent}i %>s", "",
         "found \" \" in column 18, which may stand in \"%{User-Agent}i\" before it, expected double quotes "
         "around that"},
        {A, "%t '%{User-Agent}i'", "",
         "found \"'\" in column 19, which may stand in \"%{User-Agent}i\" before it, expected double quotes "
         "around that"},
        {A, "%t %r", "", "-"},
        {A, "%t %r %s", "",
         "found \" \" in column 6, which may stand in \"%r\" before it, expected double quotes around that"},
        {A, "%t %U %{X-Forwarded-For}i %s", "",
         "found \"%{X-Forwarded-For}i\" in column 7, which can't be told from a space in \"%U\", expected "
         "double "
         "quotes around it"},
        {N, "$msec $request_uri $upstream_addr", "",
         "found \"$upstream_addr\" in column 20, which can't be told from a space in \"$request_uri\", "
         "expected "
         "double quotes around it"},
        {N, "$msec $status.$request_time", "",
         "found \".\" in column 14, which may stand in \"$status\" before it, expected double quotes around "
         "that"},
        {N, "escape=none '$msec $request_uri $status'", "",
         "found \" \" in column 32, which may stand in \"$request_uri\" before it, expected double quotes "
         "around "
         "that"},
        {N, "$msec $upstream_addr : $status", "",
         "found \" : \" in column 21, which may stand in \"$upstream_addr\" before it, expected double "
         "quotes "
         "around that"},
        {A, "%t %Z", "", "found \"%Z\" in column 4, expected a directive of Apache's LogFormat"},
        {A, "%t %{a", "", "found % in column 4, expected a directive such as %h or %{Host}i"},
        {A, "%{%c}t", "",
         "found the time \"%{%c}t\" in column 1, expected sec, msec, usec, msec_frac, usec_frac, or parts of "
         "%Y "
         "%y %m %d %e %b %a %H %M %S %T %F %D %R %z"},
        {A, "combind", "",
         "found \"combind\", expected a format as LogFormat has it, or its name (did you mean "
         "\"combined\"?)"},
        {N, "mine", "", "found \"mine\", expected a format as log_format has it, or its name"},
        {N, "log_format x '$msec", "", "found ' in column 14, expected another that closes it"},
        {N, "log_format x '$msec' y", "", "found \"y\" in column 22, expected nothing behind the last quote"},
        {N, "escape=xml '$msec'", "",
         "found \"escape=xml '$msec'\" in column 1, expected escape=default, escape=json or escape=none"},
        {N, "$msec $", "", "found $ in column 7, expected a variable such as $status"},
        {A, "%t \"%{1a}i\"", "",
         "found \"%{1a}i\" in column 5, expected a name that begins with a letter, at most 31 bytes"},
        {A, "LogFormat %t", "", "found \"%t\" in column 11, expected the format in quotes"},
        {A, "%t\n%s", "", "found a control byte in column 3, expected a format of one line"},
    };
    int failed = 0;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct format f;
        struct err e = {.text = "-"};
        bool good = format_compile(&f, rows[i].server, slice_text(rows[i].format), &e);
        if (strcmp(good ? "-" : e.text, rows[i].want) == 0)
            continue;
        print_error("%s\nis   %s\nwant %s\n", rows[i].format, good ? "-" : e.text, rows[i].want);
        failed++;
    }
    assert_int_equal(failed, 0);
}

static void test_format_shipped_names_have_the_formats_of_the_servers(void **state)
{
    (void)state;
    static const struct {
        enum format_server server;
        const char *name;
        int builtin; /* -1: none */
    } names[] = {{A, "common", CLF_COMMON},
                 {A, "combined", CLF_COMBINED},
                 {A, "combinedio", -1},
                 {A, "vhost_common", -1},
                 {N, "combined", CLF_COMBINED},
                 {N, "main", -1},
                 {A, "vhost_combined", CLF_VHOST_COMBINED},
                 {A, "%a %l %u %t \"%r\" %s %B \"%{referer}i\" \"%{user-agent}i\"", CLF_COMBINED},
                 {N,
                  "escape=json $remote_addr - $remote_user [$time_local] \"$request\" $status "
                  "$body_bytes_sent \"$http_referer\" \"$http_user_agent\"",
                  -1}};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct format f;
        struct err e;
        assert_true(format_compile(&f, names[i].server, slice_text(names[i].name), &e));
        assert_true(f.has_time);
        assert_int_equal(f.is_builtin ? (int)f.builtin : -1, names[i].builtin);
    }
}

static void test_format_without_a_time_says_so(void **state)
{
    (void)state;
    static const char *const formats[] = {"%h %s", "%{%Y-%m-%d}t %s", "%{%H:%M}t %s", "%{msec_frac}t %s"};
    for (size_t i = 0; i < COUNT_OF(formats); i++) {
        struct format f;
        struct err e;
        assert_true(format_compile(&f, A, slice_text(formats[i]), &e));
        assert_false(f.has_time);
    }
}

/* ---- against the built-in decoder */

static struct dice dice;

/* A piece of a combined line, mostly a good one. */
static void add_piece(struct text *line, const char *good)
{
    static const char *const odd[] = {"",  "-",  "\"", "\\\"", "\\x22", "\xC3\xA4", " ",
                                      "?", "\\", "]",  T,      "\t",    "|"};
    if (dice_roll(&dice, 12) == 0)
        text_puts(line, odd[dice_roll(&dice, COUNT_OF(odd))]);
    if (dice_roll(&dice, 40) != 0)
        text_puts(line, good);
    if (dice_roll(&dice, 30) == 0)
        text_puts(line, odd[dice_roll(&dice, COUNT_OF(odd))]);
}

static void make_line(struct text *line)
{
    static const char *const pieces[][3] = {
        {"10.0.0.1", "::1", "a-long-host-name.example.org"},
        {" - ", " frank ", " - "},
        {"-", "x y", "anna"},
        {" " T " \"", " [10/Oct/2000:13:55:37 -0700] \"", " [31/Dec/1999:23:59:60 +0000] \""},
        {"GET /a?b HTTP/1.1", "\\x16\\x03", "POST /a b?c HTTP/1.0"},
        {"\" 200", "\" -", "\" 304"},
        {" 12", " -", " 123456789012"},
        {" \"-", " \"http://a.example/\\\"", " \""},
        {"\" \"", "\" \"Mozilla/5.0 (X11; Linux)", "\" \"-"},
        {"\"", "\"", "\"\r"}};
    text_clear(line);
    for (size_t i = 0; i < COUNT_OF(pieces); i++)
        add_piece(line, pieces[i][dice_roll(&dice, 3)]);
}

static void test_format_compiled_combined_is_the_built_in_one(void **state)
{
    (void)state;
    struct format f;
    struct format_run run;
    struct arena memory;
    struct err e;
    struct clf clf;
    struct text line = {0}, got = {0}, want = {0};
    size_t good = 0;
    dice = dice_new("test_format");
    assert_true(format_compile(&f, A, slice_text("combined"), &e));
    arena_init(&memory, 4096);
    format_run_init(&run, &f, &memory);
    clf_init(&clf, CLF_COMBINED);
    for (int i = 0; i < 100000; i++) {
        struct event ev = {0};
        struct reject why;
        make_line(&line);
        text_clear(&got);
        text_clear(&want);
        decode_line(&run, slice_of(line.ptr != NULL ? line.ptr : "", line.len), &got);
        bool fits =
            decoder_decode(&clf.decoder, slice_of(line.ptr != NULL ? line.ptr : "", line.len), &ev, &why);
        good += fits;
        if (fits)
            print_event(&ev, &want);
        else
            text_puts(&want, "reject");
        bool same = fits ? slice_equal(text_slice(&got), text_slice(&want))
                         : slice_begins(text_slice(&got), text_slice(&want));
        if (!same)
            fail_msg("%.*s\nis   %s\nwant %s", (int)line.len, line.ptr, got.ptr, want.ptr);
    }
    assert_true(good > 10000);
    text_fini(&line);
    text_fini(&got);
    text_fini(&want);
    arena_fini(&memory);
}

/* Directives, and what stands there: half of it is usual. */
static const struct {
    const char *directive, *values[6];
} parts[] = {
    {"%h", {"10.0.0.1", "192.168.100.200", "::1", "a\\\\b", "a-long-host-name.of.an.example.org", "-"}},
    {"%l", {"-", "-", "-", "-", "-", "x"}},
    {"%u", {"-", "-", "-", "anna", "\"\"", "x y"}},
    {"%t", {T, T, T, T, "[31/Dec/1999:23:59:60 +0000]", "[10/Oct/2000:13:55:6 -0700]"}},
    {"\"%r\"",
     {R, R, "\"POST /a-path/b?c=d HTTP/2.0\"", "\"\\x16\"", "\"GET http://a/b HTTP/1.1\"", "\"-\""}},
    {"%>s", {"200", "200", "304", "404", "-", "20"}},
    {"%b", {"0", "1234", "1234567", "12345678", "-", "123456789012"}},
    {"\"%{Referer}i\"", {"\"-\"", "\"-\"", "\"http://a.example/?q=1\"", "\"\"", "\"\\\"\"", "\"\xC3\xA4\""}},
    {"\"%{User-Agent}i\"",
     {"\"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/1\"", "\"curl/8\"",
      "\"Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:128.0) Gecko/20100101 Firefox/128.0\"", "\"-\"",
      "\"a\\\\\"", "\"a"}},
    {"%v", {"a.example", "www.example.org", "-", "b", "", "::1"}},
    {"%v:%p", {"a.example:80", "www.example.org:443", "::1:80", "-:80", "a:b", "a.example:8:0"}},
    {"\"%{X}i\"", {"\"12\"", "\"a\"", "\"-1.5\"", "\"-\"", "\"\"", "\"\t\""}},
    {"%D", {"1234", "0", "-", "99999999", "1.5", "a"}}};

/* Makes a format of some directives in any order, and notes them. */
static size_t make_format(size_t order[COUNT_OF(parts)], struct text *format)
{
    size_t count = 3 + (size_t)dice_roll(&dice, COUNT_OF(parts) - 2);
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        order[i] = i;
    text_clear(format);
    for (size_t i = 0; i < count; i++) {
        size_t k = i + (size_t)dice_roll(&dice, (int)(COUNT_OF(parts) - i)), swapped = order[i];
        order[i] = order[k];
        order[k] = swapped;
        text_printf(format, "%s%s", i > 0 ? " " : "", parts[order[i]].directive);
    }
    return count;
}

/* The fast path and the ops alone read alike, whatever the order of the fields. */
static void test_format_fast_path_reads_as_the_ops_do(void **state)
{
    (void)state;
    static struct format f;
    static struct format_run fast, slow;
    struct arena memory;
    struct text format = {0}, line = {0}, got = {0}, want = {0};
    size_t order[COUNT_OF(parts)], compiled = 0, whole = 0;
    struct err e;
    arena_init(&memory, 4096);
    dice = dice_new("test_format");
    for (int i = 0; i < 500; i++) {
        size_t count = make_format(order, &format);
        if (!format_compile(&f, A, text_slice(&format), &e))
            continue;
        compiled++;
        format_run_init(&fast, &f, &memory);
        format_run_init(&slow, &f, &memory);
        slow.fast.can_run = false;
        for (int k = 0; k < 50; k++) {
            int values = dice_roll(&dice, 2) == 0 ? 3 : 6;
            text_clear(&line);
            text_clear(&got);
            text_clear(&want);
            for (size_t n = 0; n < count; n++)
                text_printf(&line, "%s%s", n > 0 ? " " : "",
                            parts[order[n]].values[dice_roll(&dice, values)]);
            struct event ev;
            struct format_place at = {0, line.ptr, line.ptr, line.ptr + line.len, &ev, 0, 0};
            format_fast_take(&fast.fast, &fast.clock, &at);
            whole += at.p == at.end;
            decode_line(&fast, text_slice(&line), &got);
            decode_line(&slow, text_slice(&line), &want);
            if (!slice_equal(text_slice(&got), text_slice(&want)))
                fail_msg("%s\n%.*s\nis   %s\nwant %s", format.ptr, (int)line.len, line.ptr, got.ptr,
                         want.ptr);
            arena_reset(&memory);
        }
    }
    print_message("%zu formats, %zu lines whole by the fast path\n", compiled, whole);
    assert_true(compiled > 200 && (whole > 100 || !clf_fast_can_run()));
    text_fini(&format);
    text_fini(&line);
    text_fini(&got);
    text_fini(&want);
    arena_fini(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_format_apache_directives_become_fields),
        cmocka_unit_test(test_format_apache_times_are_read),
        cmocka_unit_test(test_format_nginx_variables_become_fields),
        cmocka_unit_test(test_format_lines_that_do_not_fit_are_rejected),
        cmocka_unit_test(test_format_ambiguous_formats_are_refused),
        cmocka_unit_test(test_format_shipped_names_have_the_formats_of_the_servers),
        cmocka_unit_test(test_format_without_a_time_says_so),
        cmocka_unit_test(test_format_compiled_combined_is_the_built_in_one),
        cmocka_unit_test(test_format_fast_path_reads_as_the_ops_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
