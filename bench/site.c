/* site.c - see site.h. First what the site consists of, then how one is drawn, then how a line is put
 * together. */
#define _DEFAULT_SOURCE 1

#include "site.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define SITE_URL      "https://www.example.org"

struct slice {
    const char *text;
    size_t len;
};

struct choice {
    double weight;
    const char *text;
};

enum body { BODY_FULL, BODY_PART, BODY_SHORT, BODY_NONE };

struct status {
    double weight;
    const char *text;
    enum body body;
};

static const struct choice methods[] = {
    {93.0, "GET"}, {4.0, "POST"}, {2.5, "HEAD"}, {0.3, "PUT"}, {0.2, "OPTIONS"},
};

static const struct choice protocols[] = {
    {82.0, " HTTP/1.1\" "}, {15.0, " HTTP/2.0\" "}, {3.0, " HTTP/1.0\" "}};

static const struct status statuses[] = {
    {88.0, "200 ", BODY_FULL},  {5.0, "304 ", BODY_NONE},   {2.2, "404 ", BODY_SHORT},
    {1.6, "301 ", BODY_SHORT},  {1.2, "302 ", BODY_SHORT},  {0.9, "206 ", BODY_PART},
    {0.4, "204 ", BODY_NONE},   {0.3, "403 ", BODY_SHORT},  {0.2, "401 ", BODY_SHORT},
    {0.15, "500 ", BODY_SHORT}, {0.05, "503 ", BODY_SHORT},
};

/* NULL stands for "a page of this site", drawn anew each time. */
static const struct choice referrers[] = {
    {42.0, "-"},
    {34.0, NULL},
    {11.0, "https://www.google.com/"},
    {4.0, "https://duckduckgo.com/"},
    {3.0, "https://www.bing.com/search?q=hierarchical+counters"},
    {3.0, "https://news.ycombinator.com/item?id=36012345"},
    {3.0, "http://feeds.example.net/planet/all.xml"},
};

static const struct choice agents[] = {
    {18.0,
     "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 "
     "Safari/537.36"},
    {8.0, "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) "
          "Version/17.5 Safari/605.1.15"},
    {8.0, "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
          "Version/17.5 Mobile/15E148 Safari/604.1"},
    {9.0, "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 "
          "Mobile Safari/537.36"},
    {10.0, "Mozilla/5.0 (X11; Linux x86_64; rv:127.0) Gecko/20100101 Firefox/127.0"},
    {12.0, "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:127.0) Gecko/20100101 Firefox/127.0"},
    {7.0, "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"},
    {6.0, "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)"},
    {4.0, "Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)"},
    {4.0, "Tiny Tiny RSS/21.05 (https://tt-rss.org/)"},
    {3.0, "FeedBurner/1.0 (http://www.FeedBurner.com)"},
    {3.0, "python-requests/2.32.3"},
    {3.0, "curl/8.8.0"},
    {3.0, "Go-http-client/2.0"},
    {2.0, "-"},
};

static const char *const users[] = {"frank", "alice", "bob", "build-agent", "monitoring"};

static const char *const words[] = {
    "counter", "minute", "bucket", "ledger", "logstash", "kibana",  "summer", "winter", "garden",
    "recipe",  "travel", "kernel", "sensor", "battery",  "bicycle", "camera", "guitar", "museum",
    "network", "packet", "parser", "puppet", "railway",  "river",   "school", "tomato",
};

/* The head of the Zipf distribution; the tail is made up by path_encode(). */
static const char *const top_paths[] = {
    "/index.html", "/favicon.ico", "/style.css", "/",      "/robots.txt",      "/images/logo.png",
    "/js/app.js",  "/feed.xml",    "/search",    "/about", "/images/hero.jpg", "/wp-login.php",
};

/* ---- Drawing one of many by weight: Walker's alias method, one random number and one comparison ---- */

struct alias {
    uint32_t count;
    struct {
        uint32_t keep_below; /* of 2^32: the share of this column that is the column's own */
        uint32_t other;
    } * columns;
};

struct path {
    struct slice slice;
    uint32_t size_bytes; /* of the page's full body */
    bool has_query;
};

struct client {
    char start[32]; /* "198.51.100.7 - frank [" */
    size_t start_len;
    struct slice agent;
};

struct site {
    uint64_t random;
    struct alias by_path, by_client, by_method, by_protocol, by_status, by_referrer;
    struct path *paths;
    char *path_text;
    struct client *clients;
    int64_t day; /* of date[], in days since the epoch */
    char date[16];
};

static void *checked_calloc(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory)
        abort();
    return memory;
}

uint64_t site_random(struct site *st)
{
    uint64_t z = st->random += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* A number below `limit`. The bias of at most limit ÷ 2^32 is of no account here. */
static uint32_t below(struct site *st, uint32_t limit)
{
    return (uint32_t)(((site_random(st) >> 32) * limit) >> 32);
}

/* Vose's construction: columns that are too small are filled up by those that are too large. */
static void alias_init(struct alias *al, const double *weights, uint32_t count)
{
    double *share = checked_calloc(count, sizeof(*share));
    uint32_t *queue =
        checked_calloc(count, sizeof(*queue)); /* small ones from the front, large from the back */
    uint32_t small = 0, large = count;
    double total = 0;

    al->count = count;
    al->columns = checked_calloc(count, sizeof(*al->columns));
    for (uint32_t i = 0; i < count; i++)
        total += weights[i];
    for (uint32_t i = 0; i < count; i++) {
        share[i] = weights[i] / total * count;
        queue[share[i] < 1 ? small++ : --large] = i;
        al->columns[i].keep_below = UINT32_MAX;
        al->columns[i].other = i;
    }
    while (small > 0 && large < count) {
        uint32_t poor = queue[--small], rich = queue[large];
        al->columns[poor].keep_below = (uint32_t)(share[poor] * 4294967295.0);
        al->columns[poor].other = rich;
        share[rich] -= 1 - share[poor];
        if (share[rich] < 1) {
            large++;
            queue[small++] = rich;
        }
    }
    free(queue);
    free(share);
}

static uint32_t alias_get(const struct alias *al, struct site *st)
{
    uint64_t random = site_random(st);
    uint32_t column = (uint32_t)(((random >> 32) * al->count) >> 32);
    return (uint32_t)random <= al->columns[column].keep_below ? column : al->columns[column].other;
}

static void alias_of_choices(struct alias *al, const struct choice *choices, size_t count)
{
    double weights[LENGTH(agents)] = {0}; /* the longest list */
    for (size_t i = 0; i < count; i++)
        weights[i] = choices[i].weight;
    alias_init(al, weights, (uint32_t)count);
}

/* Zipf's law, 1 ÷ rank; a larger `flatten` makes the head less steep. */
static void alias_of_ranks(struct alias *al, uint32_t count, double flatten)
{
    double *weights = checked_calloc(count, sizeof(*weights));
    for (uint32_t i = 0; i < count; i++)
        weights[i] = 1.0 / (i + 1.0 + flatten);
    alias_init(al, weights, count);
    free(weights);
}

/* ---- Building the site ---- */

/* The rank stands in every made-up path, so that no two are the same. */
static int path_encode(struct site *st, uint32_t rank, char *out, size_t room, bool *has_query)
{
    const char *one = words[below(st, LENGTH(words))], *two = words[below(st, LENGTH(words))];
    uint32_t kind = below(st, 10), year = 2009 + below(st, 17), month = 1 + below(st, 12);

    *has_query = kind < 3;
    switch (kind) {
    case 0:
        return snprintf(out, room, "/api/v1/%s/%u", one, rank);
    case 1:
        return snprintf(out, room, "/forum/viewtopic-%u.php", rank);
    case 2:
        return snprintf(out, room, "/shop/%s/%s-%u", one, two, rank);
    case 3:
        return snprintf(out, room, "/images/%s/%s-%u.png", one, two, rank);
    case 4:
        return snprintf(out, room, "/static/js/%s.%06x.js", one, rank);
    case 5:
        return snprintf(out, room, "/wiki/Caf%%C3%%A9_%s_(%u)", one, rank);
    case 6:
        return snprintf(out, room, "/docs/%s/%s/%u.html", one, two, rank);
    default:
        return snprintf(out, room, "/blog/%u/%02u/%s-%s-%u.html", year, month, one, two, rank);
    }
}

static void paths_init(struct site *st)
{
    enum { PATH_BYTES_MAX = 64 };
    char *text = st->path_text = checked_calloc(SITE_PATHS, PATH_BYTES_MAX);

    st->paths = checked_calloc(SITE_PATHS, sizeof(*st->paths));
    for (uint32_t i = 0; i < SITE_PATHS; i++) {
        struct path *pa = &st->paths[i];
        int len = path_encode(st, i, text, PATH_BYTES_MAX, &pa->has_query);
        if (i < LENGTH(top_paths)) {
            len = snprintf(text, PATH_BYTES_MAX, "%s", top_paths[i]);
            pa->has_query = strcmp(text, "/search") == 0;
        }
        pa->slice = (struct slice){text, (size_t)len};
        pa->size_bytes = 300 + below(st, 256u << below(st, 10)); /* many small files and some of 100 kB */
        text += len + 1;
    }
    alias_of_ranks(&st->by_path, SITE_PATHS, 0);
}

static void clients_init(struct site *st)
{
    struct alias by_agent;

    alias_of_choices(&by_agent, agents, LENGTH(agents));
    st->clients = checked_calloc(SITE_CLIENTS, sizeof(*st->clients));
    for (uint32_t i = 0; i < SITE_CLIENTS; i++) {
        struct client *cl = &st->clients[i];
        /* An odd multiplier maps the 2^24 numbers one to one, so every client has an address of its own. */
        uint32_t host = (i * 0x9e3779b1u + 12345u) & 0xffffff;
        const char *user = below(st, 100) < 3 ? users[below(st, LENGTH(users))] : "-";
        int len = snprintf(cl->start, sizeof(cl->start), "%u.%u.%u.%u - %s [", 20 + (host & 63), host >> 16,
                           (host >> 8) & 255, host & 255, user);
        cl->start_len = (size_t)len;
        const char *agent = agents[alias_get(&by_agent, st)].text;
        cl->agent = (struct slice){agent, strlen(agent)};
    }
    alias_of_ranks(&st->by_client, SITE_CLIENTS, 500);
    free(by_agent.columns);
}

struct site *site_new(uint64_t seed)
{
    struct site *st = checked_calloc(1, sizeof(*st));
    double status_weights[LENGTH(statuses)];

    st->random = seed;
    st->day = INT64_MIN;
    for (size_t i = 0; i < LENGTH(statuses); i++)
        status_weights[i] = statuses[i].weight;
    alias_init(&st->by_status, status_weights, LENGTH(statuses));
    alias_of_choices(&st->by_method, methods, LENGTH(methods));
    alias_of_choices(&st->by_protocol, protocols, LENGTH(protocols));
    alias_of_choices(&st->by_referrer, referrers, LENGTH(referrers));
    paths_init(st);
    clients_init(st);
    return st;
}

void site_free(struct site *st)
{
    struct alias *all[] = {&st->by_path,     &st->by_client, &st->by_method,
                           &st->by_protocol, &st->by_status, &st->by_referrer};
    for (size_t i = 0; i < LENGTH(all); i++)
        free(all[i]->columns);
    free(st->paths);
    free(st->path_text);
    free(st->clients);
    free(st);
}

/* ---- Putting a line together: each put_…() writes at `out` and returns where it ended ---- */

static char *put(char *out, const char *text, size_t len)
{
    memcpy(out, text, len);
    return out + len;
}

static char *put_text(char *out, const char *text)
{
    return put(out, text, strlen(text));
}

static char *put_number(char *out, uint32_t number)
{
    char digits[10];
    size_t at = sizeof(digits);
    do
        digits[--at] = (char)('0' + number % 10);
    while (number /= 10);
    return put(out, digits + at, sizeof(digits) - at);
}

static char *put_two_digits(char *out, int64_t number, char end)
{
    out[0] = (char)('0' + number / 10);
    out[1] = (char)('0' + number % 10);
    out[2] = end;
    return out + 3;
}

/* "05/Jan/2026:00:00:00 +0000"; the calendar is asked once a day only. */
static char *put_time(struct site *st, char *out, int64_t at_s)
{
    int64_t second_of_day = at_s % 86400;

    if (st->day != at_s / 86400) {
        time_t at = (time_t)at_s;
        struct tm tm;
        st->day = at_s / 86400;
        strftime(st->date, sizeof(st->date), "%d/%b/%Y:", gmtime_r(&at, &tm));
    }
    out = put_text(out, st->date);
    out = put_two_digits(out, second_of_day / 3600, ':');
    out = put_two_digits(out, second_of_day / 60 % 60, ':');
    out = put_two_digits(out, second_of_day % 60, ' ');
    return put_text(out, "+0000] \"");
}

static char *put_query(struct site *st, char *out)
{
    switch (below(st, 4)) {
    case 0:
        return put_number(put_text(out, "?page="), below(st, 40));
    case 1:
        return put_text(put_text(out, "?q="), words[below(st, LENGTH(words))]);
    case 2:
        return put_number(put_text(out, "?utm_source=newsletter&utm_medium=email&id="), below(st, 100000));
    default:
        return put_number(put_text(out, "?sort=date&order=desc&t="), below(st, 1000000));
    }
}

/* What "%b" logs: "-" where no body was sent. */
static char *put_bytes(struct site *st, char *out, enum body body, uint32_t size_bytes)
{
    switch (body) {
    case BODY_FULL:
        return put_number(out, size_bytes);
    case BODY_PART:
        return put_number(out, 1 + below(st, size_bytes));
    case BODY_SHORT:
        return put_number(out, 196 + below(st, 64));
    case BODY_NONE:
        break;
    }
    return put_text(out, "-");
}

static char *put_referrer(struct site *st, char *out)
{
    const char *referrer = referrers[alias_get(&st->by_referrer, st)].text;
    if (referrer)
        return put_text(out, referrer);
    const struct slice *page = &st->paths[alias_get(&st->by_path, st)].slice;
    return put(put_text(out, SITE_URL), page->text, page->len);
}

size_t site_encode(struct site *st, int64_t at_s, char *out)
{
    const struct path *pa = &st->paths[alias_get(&st->by_path, st)];
    const struct client *cl = &st->clients[alias_get(&st->by_client, st)];
    const struct status *status = &statuses[alias_get(&st->by_status, st)];
    const char *method = methods[alias_get(&st->by_method, st)].text;
    char *start = out;

    out = put(out, cl->start, cl->start_len);
    out = put_time(st, out, at_s);
    out = put_text(out, method);
    *out++ = ' ';
    out = put(out, pa->slice.text, pa->slice.len);
    if (pa->has_query && below(st, 2))
        out = put_query(st, out);
    out = put_text(out, protocols[alias_get(&st->by_protocol, st)].text);
    out = put_text(out, status->text);
    out = put_bytes(st, out, strcmp(method, "HEAD") == 0 ? BODY_NONE : status->body, pa->size_bytes);
    out = put_text(out, " \"");
    out = put_referrer(st, out);
    out = put_text(out, "\" \"");
    out = put(out, cl->agent.text, cl->agent.len);
    out = put_text(out, "\"\n");
    return (size_t)(out - start);
}
