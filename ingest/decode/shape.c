#include "ingest/decode/shape.h"

#include "ingest/decode/clf_time.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define WORDS_MAX       64
#define SECONDS_DIGITS  3
#define SECONDS_MAX     6  /* digits of whole seconds: a duration has fewer than an instant */
#define HEADER_MIN      17 /* bytes of the shortest header of a response, "HTTP/1.1 200 OK" and a line end */
#define HEADER_MAX      16384 /* and of a long one */
#define BODY_LARGE      10000 /* bytes of a body that no other number equals by chance */
#define HEAD_WORDS_MIN  3     /* host, logname, user */
#define COMMON_FIELDS   3     /* request, status, bytes */
#define COMBINED_FIELDS 5

/* A line's fields behind its time. */
struct token {
    struct slice text; /* without quotes */
    bool is_quoted, is_cut;
};

struct tokens {
    struct token list[COMBINED_FIELDS + SHAPE_TAILS_MAX];
    size_t count;
};

/* ---- kinds of words */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool all_digits(struct slice s)
{
    size_t i = 0;
    while (i < s.len && is_digit(s.ptr[i]))
        i++;
    return s.len > 0 && i == s.len;
}

static bool is_ipv4(struct slice s)
{
    size_t dots = 0, digits = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] == '.' && digits > 0) {
            dots++;
            digits = 0;
        } else if (!is_digit(s.ptr[i]) || ++digits > 3) {
            return false;
        }
    }
    return dots == 3 && digits > 0;
}

static bool is_ipv6(struct slice s)
{
    size_t colons = 0, i = 0;
    for (; i < s.len && (s.ptr[i] == ':' || s.ptr[i] == '.' || is_digit(s.ptr[i]) ||
                         ((s.ptr[i] | 0x20) >= 'a' && (s.ptr[i] | 0x20) <= 'f'));
         i++)
        colons += s.ptr[i] == ':';
    return i == s.len && colons >= 2;
}

static bool is_address(struct slice s)
{
    return is_ipv4(s) || is_ipv6(s);
}

static bool is_letter(char c)
{
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

/* Is it a name of a computer, with or without dots? */
static bool is_name(struct slice s)
{
    bool has_letter = false;
    for (size_t i = 0; i < s.len; i++) {
        if (!is_letter(s.ptr[i]) && !is_digit(s.ptr[i]) && s.ptr[i] != '.' && s.ptr[i] != '_' &&
            (s.ptr[i] != '-' || i == 0))
            return false;
        has_letter |= is_letter(s.ptr[i]);
    }
    return has_letter;
}

static bool is_host(struct slice s)
{
    return is_address(s) || is_name(s);
}

/* Is it "name:80"? */
static bool has_port(struct slice s)
{
    const char *colon = s.len > 0 ? memrchr(s.ptr, ':', s.len) : NULL;
    if (colon == NULL || is_ipv6(s))
        return false;
    struct slice name = slice_of(s.ptr, (size_t)(colon - s.ptr));
    struct slice port = slice_of(colon + 1, s.len - name.len - 1);
    bool is_bracketed = name.len > 2 && name.ptr[0] == '[' && name.ptr[name.len - 1] == ']';
    if (is_bracketed)
        name = slice_of(name.ptr + 1, name.len - 2);
    return all_digits(port) && port.len <= 5 && (is_host(name) || is_bracketed);
}

/* A logname with a dot or colon may be a host that was moved. */
static bool is_logname(struct slice s)
{
    return slice_is(s, "-") || (is_name(s) && memchr(s.ptr, '.', s.len) == NULL);
}

/* The bits of words with ", " between them, each of which `is_kind` takes; 0: one is of another kind. */
static unsigned kind_of_list(struct slice s, bool (*is_kind)(struct slice), unsigned one, unsigned several)
{
    bool has_several = false;
    for (;;) {
        const char *comma = s.len > 0 ? memchr(s.ptr, ',', s.len) : NULL;
        struct slice first = slice_of(s.ptr, comma != NULL ? (size_t)(comma - s.ptr) : s.len);
        if (!is_kind(first))
            return 0;
        if (comma == NULL)
            return has_several ? several : one;
        has_several = true;
        s = slice_of(comma + 1, s.len - first.len - 1);
        if (s.len > 0 && s.ptr[0] == ' ')
            s = slice_of(s.ptr + 1, s.len - 1);
    }
}

static bool is_seconds(struct slice s)
{
    const char *point = s.len > SECONDS_DIGITS ? slice_end(s) - SECONDS_DIGITS - 1 : NULL;
    return point != NULL && *point == '.' && all_digits(slice_of(point + 1, SECONDS_DIGITS)) &&
           point - s.ptr <= SECONDS_MAX && all_digits(slice_of(s.ptr, (size_t)(point - s.ptr)));
}

static bool is_seconds_or_dash(struct slice s)
{
    return slice_is(s, "-") || is_seconds(s);
}

static unsigned kind_of_tail(const struct token *t)
{
    unsigned quotes = t->is_quoted ? TAIL_QUOTED : TAIL_BARE, kind;
    if (t->text.len == 0 || slice_is(t->text, "-"))
        return quotes | TAIL_DASH;
    if (all_digits(t->text))
        return quotes | TAIL_INTEGER;
    if (t->text.ptr[0] == '[' && slice_end(t->text)[-1] == ']')
        return quotes | TAIL_BRACKETS;
    kind = kind_of_list(t->text, is_address, TAIL_ADDRESS, TAIL_ADDRESSES);
    if (kind == 0)
        kind = kind_of_list(t->text, is_seconds_or_dash, TAIL_SECONDS, TAIL_SECONDS_LIST);
    return quotes | (kind != 0 ? kind : TAIL_TEXT);
}

/* ---- a line */

/* The time of the line, behind which the request follows; NULL: there is none. */
static const char *find_time(struct slice line)
{
    struct clf_minute minutes[2] = {{CLF_NOBODY, 0}, {CLF_NOBODY, 0}};
    const char *end = slice_end(line), *p = line.ptr, *at;
    int64_t ms;
    enum reject_reason reason;
    while (p < end && (p = memchr(p, '[', (size_t)(end - p))) != NULL) {
        if (p > line.ptr && p[-1] == ' ' && end - p > CLF_TIME_BYTES + 2 &&
            memcmp(p + CLF_TIME_BYTES, " \"", 2) == 0 && clf_time_parse(minutes, p, end, &ms, &reason, &at))
            return p;
        p++;
    }
    return NULL;
}

/* Splits at single spaces. 0: there are too many words, or empty ones. */
static size_t split_words(const char *p, const char *end, struct slice words[WORDS_MAX])
{
    size_t count = 0;
    while (p < end) {
        const char *space = memchr(p, ' ', (size_t)(end - p));
        const char *to = space != NULL ? space : end;
        if (to == p || count == WORDS_MAX)
            return 0;
        words[count++] = slice_of(p, (size_t)(to - p));
        p = to + 1;
    }
    return count;
}

/* The number of words before the host, and their kind. */
static size_t find_front(const struct slice *words, size_t count, unsigned *front)
{
    size_t n = 0;
    /* The user is "- …" if the words before it are moved by one. */
    bool is_moved = count > HEAD_WORDS_MIN && slice_is(words[2], "-") && !slice_is(words[1], "-");
    *front = FRONT_NOTHING;
    if (is_host(words[0]) && is_logname(words[1]) && !is_moved)
        return 0;
    while (n < count && words[n].ptr[words[n].len - 1] == ',')
        n++;
    struct slice whole = slice_of(words[0].ptr, n < count ? (size_t)(slice_end(words[n]) - words[0].ptr) : 0);
    *front = n > 0 && kind_of_list(whole, is_address, 0, FRONT_LIST) != 0 ? FRONT_LIST
             : n > 0                                                      ? FRONT_OTHER
             : is_address(words[0])                                       ? FRONT_ADDRESS
             : has_port(words[0])                                         ? FRONT_PORT
             : is_name(words[0])                                          ? FRONT_NAME
                                                                          : FRONT_OTHER;
    return n + 1;
}

/* Takes the server's name from a line that begins with it. */
static void note_name(struct shape *s, struct slice name, struct slice host)
{
    uint64_t n = XXH3_64bits(name.ptr, name.len), h = XXH3_64bits(host.ptr, host.len);
    size_t i = 0;
    while (i < s->name_count && s->names[i] != n)
        i++;
    if (i < s->name_count)
        s->is_servers_name |= s->hosts[i] != h;
    if (i < s->name_count || i == SHAPE_NAMES_MAX)
        return;
    s->names[i] = n;
    s->hosts[i] = h;
    s->name_count++;
}

static bool take_head(struct shape *s, const char *p, const char *end)
{
    struct slice words[WORDS_MAX];
    size_t count = split_words(p, end, words);
    unsigned front;
    if (count < HEAD_WORDS_MIN)
        return false;
    size_t first = find_front(words, count, &front);
    if (count < first + HEAD_WORDS_MIN || !is_host(words[first]) || !is_logname(words[first + 1]))
        return false;
    s->fronts |= front;
    s->has_logname |= !slice_is(words[first + 1], "-");
    s->has_user_of_a_word |= count == first + HEAD_WORDS_MIN;
    if ((front & (FRONT_NAME | FRONT_ADDRESS)) != 0)
        note_name(s, words[0], words[first]);
    return true;
}

/* Takes a text in quotes from behind its first quote on. */
static const char *take_quoted(const char *from, const char *end, struct token *t)
{
    const char *p = from;
    for (; p < end && *p != '"'; p++)
        p += *p == '\\' && end - p >= 2;
    t->is_cut = p >= end;
    t->text = slice_of(from, (size_t)(p - from));
    return t->is_cut ? end : p + 1;
}

/* Takes the next token behind a space. A list without quotes, as "0.1, 0.2", is one, and so is a text in
 * quotes with its name, as uct="0.1". NULL: it does not fit. */
static const char *take_token(const char *p, const char *end, struct token *t)
{
    const char *from = p;
    *t = (struct token){.is_quoted = p < end && *p == '"'};
    if (t->is_quoted)
        return take_quoted(p + 1, end, t);
    while (p < end && *p != '"' && (*p != ' ' || p[-1] == ',')) {
        if (*p == ' ' && p == from)
            return NULL;
        p++;
    }
    if (p < end && *p == '"' && p[-1] != '=')
        return NULL;
    if (p < end && *p == '"')
        p = take_quoted(p + 1, end, t);
    t->text = slice_of(from, (size_t)(p - from));
    return p > from ? p : NULL;
}

/* Takes all tokens. If there are too many, each further one takes the place of the last. */
static bool take_tokens(const char *p, const char *end, struct tokens *ts)
{
    ts->count = 0;
    while (p != NULL && p < end) {
        size_t place = ts->count < COUNT_OF(ts->list) ? ts->count++ : COUNT_OF(ts->list) - 1;
        p = *p == ' ' ? take_token(p + 1, end, &ts->list[place]) : NULL;
    }
    return p != NULL;
}

static int64_t number_of(struct slice s)
{
    int64_t n = 0;
    for (size_t i = 0; i < s.len && n < INT64_MAX / 100; i++)
        n = n * 10 + (is_digit(s.ptr[i]) ? s.ptr[i] - '0' : 0);
    return n;
}

/* May two whole numbers behind the agent be %I and %O? */
static void note_sizes(struct shape *s, const struct tokens *ts, const struct token *tail)
{
    int64_t body = number_of(ts->list[2].text), in = number_of(tail[0].text), out = number_of(tail[1].text);
    bool fit = in >= (int64_t)ts->list[0].text.len + 2 && out >= body + HEADER_MIN &&
               out <= body + body / 50 + HEADER_MAX;
    s->sizes_fit_not |= !fit;
    s->sizes_fit_well |= fit && body >= BODY_LARGE;
}

static bool take_tail(struct shape *s, const struct tokens *ts, size_t from)
{
    size_t count = ts->count - from;
    if (count == 0) {
        s->has_no_tail = true;
        return true;
    }
    s->tails_differ |= s->has_tail && s->tail_count != count;
    s->has_tail = true;
    s->tail_count = count;
    for (size_t i = 0; i < count; i++) {
        if (ts->list[from + i].is_cut)
            return false;
        s->tails[i] |= kind_of_tail(&ts->list[from + i]);
    }
    if (count == 2)
        note_sizes(s, ts, &ts->list[from]);
    return true;
}

static bool is_status(const struct token *t)
{
    return !t->is_quoted && (slice_is(t->text, "-") || (all_digits(t->text) && t->text.len == 3));
}

static bool is_size(const struct token *t)
{
    return !t->is_quoted && (slice_is(t->text, "-") || all_digits(t->text));
}

/* Do referrer and agent stand in each other's place? */
static bool is_swapped(const struct tokens *ts)
{
    return slice_begins(ts->list[3].text, slice_text("Mozilla/")) &&
           slice_begins(ts->list[4].text, slice_text("http"));
}

bool shape_add(struct shape *s, struct slice line)
{
    struct tokens ts;
    if (line.len > 0 && slice_end(line)[-1] == '\r')
        line.len--;
    const char *time = find_time(line), *end = slice_end(line);
    if (time == NULL || !take_tokens(time + CLF_TIME_BYTES, end, &ts) || ts.count < COMMON_FIELDS ||
        ts.list[0].is_cut || !is_status(&ts.list[1]) || !is_size(&ts.list[2]))
        return false;
    bool is_combined = ts.count >= COMBINED_FIELDS && ts.list[3].is_quoted && ts.list[4].is_quoted;
    if ((is_combined && (ts.list[3].is_cut || is_swapped(&ts))) || !take_head(s, line.ptr, time - 1))
        return false;
    s->lines++;
    s->is_combined |= is_combined;
    s->is_common |= !is_combined;
    if (is_combined && ts.list[4].is_cut)
        return true;
    return take_tail(s, &ts, is_combined ? COMBINED_FIELDS : COMMON_FIELDS);
}
