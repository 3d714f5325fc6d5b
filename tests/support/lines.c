#include "tests/support/lines.h"

#include "base/civil.h"

static const char *const hosts[] = {"10.0.0.1", "::1", "client.example", "192.168.100.200", "-"};
static const char *const users[] = {"-", "frank", "a user [with] words"};
static const char *const requests[] = {"GET /a HTTP/1.1",
                                       "GET /b/c/d?x=1 HTTP/1.1",
                                       "POST /a HTTP/1.0",
                                       "\\x16\\x03\\x01",
                                       "-",
                                       "GET /%41\\xc3\\xa9 HTTP/1.1",
                                       "HEAD /\xff HTTP/2.0",
                                       "GET /\\\" x HTTP/1.1",
                                       ""};
static const char *const ends[] = {"", "", "", " \"-\" \"agent\"",
                                   " \"http://e.example/x\" \"\xc3\xa9 \\t\""};
static const char *const rubbish[] = {"", "\r", "rubbish",
                                      "host - - [99/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 1",
                                      "host - - [10/Oct/2000:13:55:36 +0000] \"GET / HTTP/1.0\" 20 1"};

#define ANY(d, array) array[dice_roll(d, COUNT_OF(array))]

void lines_add_good(struct text *out, struct dice *d, int64_t at_ms, int64_t spread_ms)
{
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    struct civil c = civil_from_ms(at_ms - dice_roll(d, spread_ms));
    text_printf(out, "%s - %s [%02d/%s/%04d:%02d:%02d:%02d +0000] \"", ANY(d, hosts), ANY(d, users), c.day,
                months[c.month - 1], c.year, c.hour, c.minute, c.second);
    if (dice_roll(d, 2) == 0)
        text_puts(out, ANY(d, requests));
    else
        text_printf(out, "GET /page/%d.html HTTP/1.1", (int)dice_roll(d, 300));
    text_printf(out, "\" %d %d%s%s\n", (int)(100 + dice_roll(d, 500)), (int)dice_roll(d, 100000),
                ANY(d, ends), dice_roll(d, 50) == 0 ? "\r" : "");
}

void lines_add(struct text *out, struct dice *d, int64_t at_ms, int64_t spread_ms)
{
    if (dice_roll(d, 40) == 0)
        text_printf(out, "%s\n", ANY(d, rubbish));
    else
        lines_add_good(out, d, at_ms, spread_ms);
}
