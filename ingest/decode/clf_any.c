#include "ingest/decode/clf_any.h"

#include "base/check.h"
#include "ingest/decode/clf_number.h"
#include "ingest/decode/clf_request.h"
#include "ingest/scan.h"

/* Inlined into one function, so that struct reading stays in registers: that halves the cost of a line. */
#define HOT  inline __attribute__((always_inline))
#define COLD __attribute__((noinline, cold))

/* A line being read. Functions called take_… put fields into the event and return the next byte, or NULL with
 * the reject written. */
struct reading {
    const char *start, *end;
    struct event *ev;
    struct reject *why;
    uint64_t present, odd; /* the event's bits, until the line is known to be good */
};

static COLD void write_reject(struct reject *why, enum reject_reason reason, const char *start,
                              const char *at)
{
    *why = (struct reject){reason, (size_t)(at - start) + 1};
}

static HOT const char *refuse(const struct reading *r, enum reject_reason reason, const char *at)
{
    write_reject(r->why, reason, r->start, at);
    return NULL;
}

static HOT void put(struct reading *r, enum field f, const char *from, const char *to, bool odd)
{
    r->ev->field[f] = slice_of(from, (size_t)(to - from));
    r->present |= (uint64_t)1 << f;
    r->odd |= (uint64_t)odd << f;
}

/* Puts a field, unless it is "" or "-": absent. */
static HOT void put_if_present(struct reading *r, enum field f, const char *from, const char *to, bool odd)
{
    if (!event_is_absent(from, to))
        put(r, f, from, to, odd);
}

static HOT bool is_quote_after_space(const char *p, const char *end)
{
    return p + 2 <= end && memcmp(p, " \"", 2) == 0;
}

/* Takes the time at `p` and the opening quote behind it, which is required, since users may hold brackets. */
static const char *take_time(struct clf *c, const struct reading *r, const char *p)
{
    const char *at;
    enum reject_reason reason;
    bool cached = r->end - p >= CLF_TIME_BYTES && clf_time_cached(c->minutes, p, &r->ev->at_ms);
    if (!cached && !clf_time_parse(c->minutes, p, r->end, &r->ev->at_ms, &reason, &at))
        return refuse(r, reason, at);
    p += CLF_TIME_BYTES;
    if (!is_quote_after_space(p, r->end))
        return refuse(r, REJECT_REQUEST, p < r->end && *p == ' ' ? p + 1 : p);
    return p + 2;
}

/* Is "-" one of several words? */
static COLD bool has_dash(const char *p, const char *end)
{
    bool has = end - p > 2 && (memcmp(p, "- ", 2) == 0 || memcmp(end - 2, " -", 2) == 0);
    return has || (end - p > 4 && memmem(p, (size_t)(end - p), " - ", 3) != NULL);
}

/* A name with a dot, or an address. It is no logname, but the host, or the server's name. */
static COLD bool is_host_like(const char *p, const char *end)
{
    return memchr(p, '.', (size_t)(end - p)) != NULL || memchr(p, ':', (size_t)(end - p)) != NULL;
}

/* Takes logname, user and time. The user ends at the first " [" that a time follows; without one, a
 * reject. */
static COLD const char *take_identity(struct clf *c, struct reading *r, const char *p)
{
    const char *user = memchr(p, ' ', (size_t)(r->end - p));
    if (user == NULL || user == p)
        return refuse(r, REJECT_IDENTITY, user == NULL ? r->end : p);
    put_if_present(r, FIELD_LOGNAME, p, user, scan_has_odd(p, user));
    const char *logname_end = user++;
    struct reject first = {REJECT_COUNT, 0};
    for (const char *q = user; (q = memchr(q, ' ', (size_t)(r->end - q))) != NULL; q++) {
        if (q == user || r->end - q < 2 || q[1] != '[')
            continue;
        const char *next = take_time(c, r, q + 1);
        if (next != NULL) {
            /* An address or a name before the host moves them, as does a header of syslog: then the logname,
             * mostly "-", is a word of the user. So does a list of addresses: then the host ends with ','. */
            if (c->format == CLF_AUTO && *p != '-' && (p[-2] == ',' || has_dash(user, q)))
                return refuse(r, REJECT_IDENTITY, user);
            if (c->format == CLF_AUTO && is_host_like(p, logname_end))
                return refuse(r, REJECT_IDENTITY, p);
            if (q - user != 2 || memcmp(user, "\"\"", 2) != 0) /* which Apache writes for an empty user */
                put_if_present(r, FIELD_USER, user, q, scan_has_odd(user, q));
            return next;
        }
        if (first.reason == REJECT_COUNT)
            first = *r->why;
    }
    if (first.reason != REJECT_COUNT) {
        *r->why = first;
        return NULL;
    }
    const char *after = memchr(user, ' ', (size_t)(r->end - user));
    if (user == r->end || *user == ' ' || *user == '[')
        return refuse(r, REJECT_IDENTITY, user);
    return refuse(r, REJECT_TIME, after == NULL ? r->end : after + 1);
}

/* The quote that closes the field that begins at `p`, or the end of the line. */
static HOT const char *closing_quote(const char *p, const char *end, bool *odd)
{
    for (;;) {
        p = scan_quoted(p, end, '"');
        if (LIKELY(p == end || *p == '"'))
            return p;
        *odd |= scan_is_odd(*p);
        p += *p == '\\' && end - p >= 2 ? 2 : 1;
    }
}

/* Puts the HTTP fields of the request [p, q). `question` is its first '?'; without one, at or after its
 * end. */
static HOT void put_request(struct reading *r, const char *p, const char *q, const char *question, bool odd)
{
    put(r, FIELD_REQUEST, p, q, odd);
    struct clf_request http;
    if (!clf_request_split(p, q, &http))
        return;
    const char *target = http.target, *end = http.target_end;
    if (UNLIKELY(odd)) { /* finds the odd fields, and a '?' behind odd bytes */
        const char *found = memchr(target, '?', (size_t)(end - target));
        question = found != NULL ? found : end;
    }
    struct slice path = clf_request_path_before(target, question < end ? question : end);
    put(r, FIELD_METHOD, p, target - 1, false);
    put(r, FIELD_TARGET, target, end, odd && scan_has_odd(target, end));
    put(r, FIELD_PATH, path.ptr, slice_end(path), odd && scan_has_odd(path.ptr, slice_end(path)));
    if (end < q)
        put(r, FIELD_PROTOCOL, end + 1, q, odd && scan_has_odd(end + 1, q));
}

static HOT const char *take_request(struct reading *r, const char *p)
{
    bool odd = false;
    const char *question = r->end, *q = scan_quoted(p, r->end, '?');
    if (q == r->end || *q != '"') {
        while (UNLIKELY(q < r->end && *q != '"' && *q != '?' && !scan_is_odd(*q)))
            q = scan_quoted(q + 1, r->end, '?');
        question = q; /* at an odd byte, put_request() searches for the '?' itself */
        q = closing_quote(q, r->end, &odd);
        if (UNLIKELY(q == r->end))
            return refuse(r, REJECT_UNTERMINATED, p - 1);
    }
    if (LIKELY(!event_is_absent(p, q)))
        put_request(r, p, q, question, odd);
    return q + 1;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Takes " 200" or " -". */
static const char *take_status(struct reading *r, const char *p)
{
    if (r->end - p >= 4 && clf_number_status(p, &r->ev->number[FIELD_STATUS])) {
        put(r, FIELD_STATUS, p + 1, p + 4, false);
        return p + 4;
    }
    if (r->end - p >= 2 && memcmp(p, " -", 2) == 0)
        return p + 2;
    const char *at = p + (p < r->end && *p == ' ');
    while (at > p && at < r->end && is_digit(*at))
        at++;
    return refuse(r, REJECT_STATUS, at);
}

/* Takes " 2326" or " -", up to a space or the end of the line. */
static const char *take_bytes(struct reading *r, const char *p)
{
    if (p < r->end && *p != ' ')
        return refuse(r, REJECT_STATUS, p);
    const char *from = p + (p < r->end);
    int64_t value = 0;
    for (p = from; p < r->end && is_digit(*p); p++) {
        value = value * 10 + (*p - '0');
        if (value > EVENT_NUMBER_MAX)
            return refuse(r, REJECT_BYTES, p);
    }
    if (p > from) {
        put(r, FIELD_BYTES, from, p, false);
        r->ev->number[FIELD_BYTES] = value;
    } else if (p < r->end && *p == '-') {
        p++;
    }
    return p > from && (p == r->end || *p == ' ') ? p : refuse(r, REJECT_BYTES, p);
}

/* Takes any valid status and size, byte by byte. */
static COLD const char *take_any_numbers(struct reading *r, const char *p)
{
    p = take_status(r, p);
    return p != NULL ? take_bytes(r, p) : NULL;
}

/* Takes status and size. Fast path: " 200 2326 " with more of the line behind it, read at once. */
static HOT const char *take_numbers(struct reading *r, const char *p)
{
    int64_t status, bytes;
    unsigned digits;
    if (LIKELY(r->end - p >= SCAN_STEP && clf_number_status(p, &status) && p[4] == ' ' &&
               (digits = clf_number_digits(p + 5, &bytes)) > 0 && p[5 + digits] == ' ')) {
        put(r, FIELD_STATUS, p + 1, p + 4, false);
        put(r, FIELD_BYTES, p + 5, p + 5 + digits, false);
        r->ev->number[FIELD_STATUS] = status;
        r->ev->number[FIELD_BYTES] = bytes;
        return p + 5 + digits;
    }
    struct reading copy = *r; /* its address is taken, so that `r` can stay in registers */
    p = take_any_numbers(&copy, p);
    *r = copy;
    return p;
}

/* Takes ' "text"' with its space. The last field of a line may lack its closing quote. */
static HOT const char *take_quoted(struct reading *r, const char *p, enum field f, enum reject_reason reason,
                                   bool is_last)
{
    if (!is_quote_after_space(p, r->end))
        return refuse(r, reason, p < r->end && *p == ' ' ? p + 1 : p);
    p += 2;
    bool odd = false;
    const char *q = closing_quote(p, r->end, &odd);
    if (q == r->end && !is_last)
        return refuse(r, REJECT_UNTERMINATED, p - 1);
    put_if_present(r, f, p, q, odd);
    return q == r->end ? q : q + 1;
}

static COLD const char *skip_spaces(const char *p, const char *end)
{
    while (p < end && *p == ' ')
        p++;
    return p;
}

/* Do other bytes than spaces follow? */
static HOT bool has_more(const char *p, const char *end)
{
    return LIKELY(is_quote_after_space(p, end)) || skip_spaces(p, end) != end;
}

/* The end of a field behind a combined line: a word, a text in quotes, or both, as uct="0.120, 0.004". If a
 * quote stands elsewhere or is not closed, that quote. */
static COLD const char *skip_field(const char *p, const char *end)
{
    bool odd = false; /* not asked for */
    const char *q = p;
    while (q < end && *q != ' ' && *q != '"')
        q++;
    bool is_text = q < end && *q == '"' && (q == p || q[-1] == '=');
    const char *close = is_text ? closing_quote(q + 1, end, &odd) : end;
    return close < end ? close + 1 : q;
}

/* Skips further fields behind a combined line, with a space before each. Returns the first byte that does not
 * fit, or the end. */
static COLD const char *skip_fields(const char *p, const char *end)
{
    while (p < end && *p == ' ')
        p = skip_field(skip_spaces(p, end), end);
    return p;
}

static HOT bool take_end(const struct reading *r, const char *p, bool takes_more)
{
    if (LIKELY(p == r->end))
        return true;
    p = takes_more ? skip_fields(p, r->end) : skip_spaces(p, r->end);
    return p == r->end || refuse(r, REJECT_TRAILING, p);
}

/* Takes the host. Pre: no byte before `clean` is odd or a space. */
static HOT const char *take_host(struct reading *r, const char *p, const char *clean)
{
    bool odd = false;
    for (; UNLIKELY(clean < r->end && *clean != ' '); clean++)
        odd |= scan_is_odd(*clean);
    if (UNLIKELY(clean == p || *p == '"')) /* servers escape quotes, so this one begins no host */
        return refuse(r, REJECT_HOST, p);
    if (UNLIKELY(clean == r->end))
        return refuse(r, REJECT_IDENTITY, clean);
    put_if_present(r, FIELD_HOST, p, clean, odd);
    return clean + 1;
}

static HOT const char *take_identity_and_time(struct clf *c, struct reading *r, const char *p)
{
    const char *next = p + 4 + CLF_TIME_BYTES + 2;
    if (LIKELY(next <= r->end && memcmp(p, "- - ", 4) == 0 &&
               clf_time_cached(c->minutes, p + 4, &r->ev->at_ms) && memcmp(next - 2, " \"", 2) == 0))
        return next;
    struct reading copy = *r; /* its address is taken, so that `r` can stay in registers */
    next = take_identity(c, &copy, p);
    *r = copy;
    return next;
}

/* Takes the line from the host on. */
static HOT bool take_line(struct clf *c, struct reading *r, const char *p, const char *clean,
                          enum clf_format format)
{
    p = take_host(r, p, clean);
    if (p == NULL || (p = take_identity_and_time(c, r, p)) == NULL || (p = take_request(r, p)) == NULL ||
        (p = take_numbers(r, p)) == NULL)
        return false;
    bool is_combined = format != CLF_COMMON && (format != CLF_AUTO || has_more(p, r->end));
    if (is_combined) {
        p = take_quoted(r, p, FIELD_REFERRER, REJECT_REFERRER, false);
        if (p == NULL || (p = take_quoted(r, p, FIELD_AGENT, REJECT_AGENT, true)) == NULL)
            return false;
    }
    if (!take_end(r, p, is_combined && c->format == CLF_AUTO))
        return false;
    r->ev->present = r->present;
    r->ev->odd = r->odd;
    r->ev->literal = 0;
    return true;
}

/* Is "server:80 " at `p`? True: *colon is the colon, *at the byte behind the space. False: *at does not
 * fit. */
static bool find_vhost(const char *p, const char *end, const char **colon, const char **at)
{
    const char *q = p;
    if (*q == '[') {
        while (q < end && *q != ']' && *q != ' ')
            q++;
        q += q < end && *q == ']' && q - p > 1;
    } else {
        while (q < end && *q != ':' && *q != ' ')
            q++;
    }
    *colon = *at = q;
    if (q == p || q == end || *q != ':')
        return false;
    const char *port = ++q;
    while (q < end && is_digit(*q) && q - port < 5)
        q++;
    *at = q;
    if (q == port || q == end || *q != ' ')
        return false;
    *at = q + 1;
    return true;
}

/* Decodes a line whose first word may or must be a server's name and port, or that has an odd first word. */
static COLD bool take_vhost_line(struct clf *c, const struct reading *empty, const char *p)
{
    struct reading r = *empty;
    const char *colon, *at;
    if (!find_vhost(p, r.end, &colon, &at))
        return c->format == CLF_AUTO ? take_line(c, &r, p, p, CLF_AUTO) : !!refuse(&r, REJECT_HOST, at);
    put_if_present(&r, FIELD_VHOST, p, colon, scan_has_odd(p, colon));
    put(&r, FIELD_PORT, colon + 1, at - 1, false);
    bool good = take_line(c, &r, at, at, CLF_COMBINED);
    const uint64_t both = (uint64_t)1 << FIELD_HOST | (uint64_t)1 << FIELD_LOGNAME;
    /* "host:5000 - frank smith [": the "-" is no host. */
    bool is_moved = (r.present & both) == (uint64_t)1 << FIELD_LOGNAME;
    if (c->format == CLF_VHOST_COMBINED || (good && !is_moved))
        return good;
    struct reject as_vhost = good ? (struct reject){0} : *r.why;
    r = *empty;
    if (take_line(c, &r, p, p, CLF_AUTO))
        return true;
    if (!good)
        *r.why = as_vhost;
    return false;
}

/* Decodes lines that do not begin with a plain word and a space. They are rare, so their cost hardly
 * matters. */
static COLD bool decode_other(struct clf *c, const struct reading *empty)
{
    const char *p = empty->start;
    if (empty->end - p >= 3 && memcmp(p, "\xEF\xBB\xBF", 3) == 0)
        p += 3;
    if (p == empty->end)
        return refuse(empty, REJECT_EMPTY, p);
    if (c->format == CLF_AUTO || c->format == CLF_VHOST_COMBINED)
        return take_vhost_line(c, empty, p);
    struct reading r = *empty;
    return take_line(c, &r, p, p, c->format);
}

bool clf_decode_any(struct decoder *d, struct slice line, struct event *ev, struct reject *why)
{
    struct clf *c = (struct clf *)d;
    const char *p = line.ptr, *end = p + line.len;
    if (end > p && end[-1] == '\r')
        end--;
    struct reading r = {.start = p, .end = end, .ev = ev, .why = why};
    const char *clean = LIKELY(end - p >= SCAN_STEP) ? scan_word(p, end) : end;
    if (LIKELY(clean != end && *clean == ' ' && c->format != CLF_VHOST_COMBINED))
        return take_line(c, &r, p, clean, c->format);
    struct reading copy = r;
    return decode_other(c, &copy);
}
