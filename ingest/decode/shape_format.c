#include "ingest/decode/shape.h"

#define APACHE_COMMON   "%h %l %u %t \"%r\" %>s %b"
#define APACHE_COMBINED " \"%{Referer}i\" \"%{User-Agent}i\""
#define NGINX_COMMON    "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent"
#define NGINX_COMBINED  " \"$http_referer\" \"$http_user_agent\""

enum { APACHE, NGINX, SERVER_COUNT };

/* A front or tail as each server writes it; NULL: it does not write it. */
struct part {
    const char *text[SERVER_COUNT];
};

static const struct part nothing = {{"", ""}};

#define IS_ONLY(bits, of) (((bits) & ~(unsigned)(of)) == 0)

/* Is it all a field of the tail holds, in quotes or not? */
static bool holds(unsigned tail, unsigned kinds)
{
    return IS_ONLY(tail, kinds);
}

static bool find_front(const struct shape *s, bool guess, struct part *front, const char **doubt)
{
    static const struct part port = {{"%v:%p ", "$server_name:$server_port "}},
                             name = {{"%v ", "$server_name "}},
                             forwarded = {{"%{X-Forwarded-For}i ", "$http_x_forwarded_for "}};
    *front = nothing;
    if (s->fronts == FRONT_NOTHING)
        return true;
    if (s->fronts == FRONT_PORT) {
        *front = port;
        return true;
    }
    if (IS_ONLY(s->fronts, FRONT_ADDRESS | FRONT_LIST)) {
        bool is_sure = (s->fronts & FRONT_LIST) != 0;
        *front = forwarded;
        if (!is_sure)
            *doubt = guess ? "if it begins with X-Forwarded-For"
                           : "an address stands before the host: X-Forwarded-For, or another";
        return is_sure || guess;
    }
    if (IS_ONLY(s->fronts, FRONT_ADDRESS | FRONT_NAME)) {
        *front = name;
        if (!s->is_servers_name)
            *doubt = guess ? "if it begins with the server's name"
                           : "a name stands before the host, and nothing shows that it is the server's";
        return s->is_servers_name || guess;
    }
    *doubt = "something else than a name or addresses stands before some hosts";
    return false;
}

#define INGRESS_FIELDS 9

/* Are they the fields that ingress-nginx writes behind the agent, unless its log-format-upstream is set? */
static bool is_of_ingress(const struct shape *s)
{
    const unsigned *t = s->tails, name = TAIL_BARE | TAIL_BRACKETS;
    return s->tail_count == INGRESS_FIELDS && t[0] == (TAIL_BARE | TAIL_INTEGER) &&
           t[1] == (TAIL_BARE | TAIL_SECONDS) && t[2] == name && t[3] == name &&
           holds(t[6], TAIL_BARE | TAIL_DASH | TAIL_SECONDS | TAIL_SECONDS_LIST);
}

static bool find_tail(const struct shape *s, struct part *tail)
{
    static const struct part forwarded = {{" \"%{X-Forwarded-For}i\"", " \"$http_x_forwarded_for\""}},
                             sizes = {{" %I %O", NULL}}, time = {{NULL, " $request_time"}},
                             times = {{NULL, " $request_time $upstream_response_time"}},
                             forwarded_time = {{NULL, " \"$http_x_forwarded_for\" $request_time"}},
                             forwarded_times =
                                 {{NULL, " \"$http_x_forwarded_for\" $request_time $upstream_response_time"}},
                             ingress = {{NULL, " $request_length $request_time [$proxy_upstream_name] "
                                               "[$proxy_alternative_upstream_name] $upstream_addr "
                                               "$upstream_response_length $upstream_response_time "
                                               "$upstream_status $req_id"}};
    static const struct part *const by_times[2][3] = {{&nothing, &time, &times},
                                                      {&forwarded, &forwarded_time, &forwarded_times}};
    *tail = nothing;
    if (!s->has_tail)
        return true;
    if (s->has_no_tail || s->tails_differ)
        return false;
    if (is_of_ingress(s)) {
        *tail = ingress;
        return true;
    }
    bool first_is_forwarded = holds(s->tails[0], TAIL_QUOTED | TAIL_DASH | TAIL_ADDRESS | TAIL_ADDRESSES) &&
                              (s->tails[0] & (TAIL_ADDRESS | TAIL_ADDRESSES)) != 0;
    const unsigned *rest = s->tails + first_is_forwarded;
    size_t count = s->tail_count - first_is_forwarded;
    bool has_time = count >= 1 && rest[0] == (TAIL_BARE | TAIL_SECONDS);
    bool has_upstream = count == 2 &&
                        holds(rest[1], TAIL_BARE | TAIL_DASH | TAIL_SECONDS | TAIL_SECONDS_LIST) &&
                        (rest[1] & (TAIL_DASH | TAIL_SECONDS_LIST)) != 0;
    if (s->tail_count == 2 && IS_ONLY(s->tails[0] | s->tails[1], TAIL_BARE | TAIL_INTEGER) &&
        !s->sizes_fit_not && s->sizes_fit_well) {
        *tail = sizes;
        return true;
    }
    if (count != (size_t)has_time + has_upstream || (has_upstream && !has_time))
        return false;
    *tail = *by_times[first_is_forwarded][count];
    return true;
}

/* Formats that have a name. NULL: it has none. */
static const char *name_of(const struct shape *s, const struct part *front, const struct part *tail)
{
    bool has_tail = tail->text[APACHE] == NULL || tail->text[APACHE][0] != '\0';
    if (s->fronts == FRONT_NOTHING && !has_tail)
        return s->is_combined ? "combined" : "common";
    if (s->fronts == FRONT_PORT && !has_tail && s->is_combined)
        return "vhost_combined";
    if (s->fronts != FRONT_NOTHING || !s->is_combined || front->text[APACHE][0] != '\0')
        return NULL;
    if (tail->text[NGINX] == NULL)
        return "apache:combinedio";
    return tail->text[APACHE] != NULL && !s->has_logname ? "nginx:main" : NULL;
}

/* Can auto read the lines, as far as it knows their fields? */
static bool auto_reads(const struct shape *s)
{
    return IS_ONLY(s->fronts, FRONT_NOTHING | FRONT_PORT) && (!s->has_tail || !s->is_common);
}

bool shape_format(const struct shape *s, bool guess, struct text *steps, const char **doubt)
{
    struct part front, tail;
    *doubt = NULL;
    if (s->lines == 0 || !s->has_user_of_a_word) {
        *doubt = "the words before the time are others than host, logname and user";
        return false;
    }
    bool is_mixed = s->is_common && s->is_combined;
    bool has_front = !is_mixed && find_front(s, guess, &front, doubt);
    bool has_tail = has_front && find_tail(s, &tail);
    int server = has_tail && tail.text[APACHE] != NULL ? APACHE : NGINX;
    if (has_tail && (server == APACHE || !s->has_logname)) {
        const char *name = name_of(s, &front, &tail);
        if (name != NULL)
            text_puts(steps, name);
        else
            text_printf(steps, "%s:%s%s%s%s", server == APACHE ? "apache" : "nginx", front.text[server],
                        server == APACHE ? APACHE_COMMON : NGINX_COMMON,
                        !s->is_combined    ? ""
                        : server == APACHE ? APACHE_COMBINED
                                           : NGINX_COMBINED,
                        tail.text[server]);
        return true;
    }
    if (!auto_reads(s)) {
        if (*doubt == NULL)
            *doubt = "fields stand behind the last one of Apache's formats, which could be several";
        return false;
    }
    text_puts(steps, "auto");
    if (s->has_tail)
        *doubt = "fields behind the agent, which could be several, are skipped: give the server's format";
    return true;
}
