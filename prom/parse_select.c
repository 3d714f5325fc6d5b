#include "base/civil.h"
#include "base/suggest.h"
#include "prom/parser.h"

#include <math.h>

#define SUBQUERY_STEP_MS MINUTE_MS /* of [1h:] */

/* ---- selectors */

static bool is_label_name(struct slice name)
{
    return memchr(name.ptr, ':', name.len) == NULL;
}

static bool take_matcher(struct parser *p, struct matcher *m)
{
    static const char *const signs[] = {"=", "!=", "=~", "!~", NULL};
    char quoted[SUGGEST_QUOTE_BYTES];
    if (p->token.kind != TOKEN_NAME)
        return parser_fail(p, "the name of a label");
    m->name = p->token.text;
    if (!is_label_name(m->name))
        return FAIL(p, p->token.at, "%s is no name of a label: it has a colon",
                    suggest_quote(m->name, quoted));
    if (!parser_next(p))
        return false;
    int kind = p->token.kind == TOKEN_SIGN ? parser_find(signs, p->token.text, false) : -1;
    if (kind < 0)
        return parser_fail(p, "=, !=, =~ or !~");
    m->kind = (enum matcher_kind)kind;
    if (!parser_next(p))
        return false;
    if (p->token.kind != TOKEN_STRING)
        return parser_fail(p, "a text in quotes");
    m->value = p->token.text;
    return parser_next(p);
}

static struct matcher *add_matcher(struct parser *p, struct selector *s, size_t *capacity)
{
    if (s->matcher_count == *capacity) {
        *capacity = *capacity == 0 ? 4 : 2 * *capacity;
        struct matcher *more = arena_add(p->arena, *capacity * sizeof *more);
        if (s->matcher_count > 0)
            memcpy(more, s->matchers, s->matcher_count * sizeof *more);
        s->matchers = more;
    }
    return &s->matchers[s->matcher_count++];
}

static bool take_matchers(struct parser *p, struct selector *s, size_t *capacity)
{
    if (!parser_take_sign(p, "{"))
        return false;
    while (!parser_is_sign(p, "}")) {
        if (!take_matcher(p, add_matcher(p, s, capacity)))
            return false;
        if (!parser_goes_on(p, "}"))
            return false;
    }
    return parser_next(p);
}

static bool take_duration(struct parser *p, int64_t *ms)
{
    if (p->token.kind != TOKEN_DURATION)
        return parser_fail(p, "a duration such as 5m or 1h30m");
    *ms = p->token.ms;
    return parser_next(p);
}

/* [5m], or [1h:1m] around an expression that is not a selector, or is one with an offset. */
static struct node *take_range(struct parser *p, struct node *n)
{
    size_t at = p->token.at;
    int64_t range_ms = 0, step_ms = SUBQUERY_STEP_MS;
    if (!parser_next(p) || !take_duration(p, &range_ms))
        return NULL;
    if (range_ms == 0) {
        FAIL(p, at, "a range must be longer than nothing");
        return NULL;
    }
    bool is_subquery = parser_is_sign(p, ":");
    if (is_subquery && (!parser_next(p) || (!parser_is_sign(p, "]") && !take_duration(p, &step_ms))))
        return NULL;
    if (step_ms == 0) {
        FAIL(p, at, "the step of a subquery must be longer than nothing");
        return NULL;
    }
    if (!parser_take_sign(p, "]"))
        return NULL;
    if (n->type != TYPE_VECTOR) {
        FAIL(p, at, "only a vector can be asked for over a range");
        return NULL;
    }
    bool is_plain = n->kind == NODE_SELECTOR && n->selector.offset_ms == 0 && n->selector.base == BASE_STEP;
    if (!is_subquery && !is_plain) {
        FAIL(p, at, "a range follows a selector: write [5m:] for a subquery");
        return NULL;
    }
    if (is_subquery) {
        struct node *around = parser_node(p, NODE_SUBQUERY, n->at);
        around->left = n;
        around->selector.step_ms = step_ms;
        n = parser_deepen(p, around, n) ? around : NULL;
    }
    if (n != NULL) {
        n->selector.range_ms = range_ms;
        n->type = TYPE_RANGE;
    }
    return n;
}

static bool take_offset(struct parser *p, struct selector *s)
{
    bool is_negative = parser_is_sign(p, "-");
    if (((is_negative || parser_is_sign(p, "+")) && !parser_next(p)) || !take_duration(p, &s->offset_ms))
        return false;
    s->offset_ms *= is_negative ? -1 : 1;
    return true;
}

static bool take_base(struct parser *p, struct selector *s)
{
    size_t at = p->token.at;
    if (parser_is_word(p, "start") || parser_is_word(p, "end")) {
        s->base = parser_is_word(p, "start") ? BASE_START : BASE_END;
        return parser_next(p) && parser_take_sign(p, "(") && parser_take_sign(p, ")");
    }
    bool is_negative = parser_is_sign(p, "-");
    if ((is_negative || parser_is_sign(p, "+")) && !parser_next(p))
        return false;
    if (p->token.kind != TOKEN_NUMBER)
        return parser_fail(p, "seconds since 1970, start() or end()");
    double ms = p->token.number * (is_negative ? -1 : 1) * SECOND_MS;
    if (!(fabs(ms) <= (double)CIVIL_END_MS))
        return FAIL(p, at, "the modifier @ needs a time");
    s->base = BASE_TIME;
    s->base_ms = (int64_t)llround(ms);
    return parser_next(p);
}

struct node *parser_modifiers(struct parser *p, struct node *n)
{
    bool has_offset = false, has_base = false;
    for (;;) {
        size_t at = p->token.at;
        bool is_offset = parser_is_word(p, "offset"), is_base = parser_is_sign(p, "@");
        if (parser_is_sign(p, "[")) {
            n = take_range(p, n);
            has_offset = has_base = false;
            if (n == NULL)
                return NULL;
            continue;
        }
        if (!is_offset && !is_base)
            return n;
        bool is_taken = is_offset ? has_offset : has_base;
        if (is_taken || (n->kind != NODE_SELECTOR && n->kind != NODE_SUBQUERY)) {
            FAIL(p, at, "%s follows a selector or a subquery, once", is_offset ? "offset" : "@");
            return NULL;
        }
        if (!parser_next(p) || !(is_offset ? take_offset(p, &n->selector) : take_base(p, &n->selector)))
            return NULL;
        *(is_offset ? &has_offset : &has_base) = true;
    }
}

struct node *parser_selector(struct parser *p, struct slice name, size_t at)
{
    struct node *n = parser_node(p, NODE_SELECTOR, at);
    size_t capacity = 0;
    if (name.len > 0)
        *add_matcher(p, &n->selector, &capacity) =
            (struct matcher){MATCHER_EQUAL, slice_text(METRIC_LABEL), name};
    if ((name.len == 0 || parser_is_sign(p, "{")) && !take_matchers(p, &n->selector, &capacity))
        return NULL;
    return n;
}

/* ---- groupings */

bool parser_labels(struct parser *p, struct grouping *g)
{
    size_t capacity = 0;
    if (!parser_take_sign(p, "("))
        return false;
    while (!parser_is_sign(p, ")")) {
        if (p->token.kind != TOKEN_NAME || !is_label_name(p->token.text))
            return parser_fail(p, "the name of a label");
        if (g->count == capacity) {
            capacity = capacity == 0 ? 4 : 2 * capacity;
            struct slice *more = arena_add(p->arena, capacity * sizeof *more);
            if (g->count > 0)
                memcpy(more, g->labels, g->count * sizeof *more);
            g->labels = more;
        }
        g->labels[g->count++] = p->token.text;
        if (!parser_next(p))
            return false;
        if (!parser_goes_on(p, ")"))
            return false;
    }
    return parser_next(p);
}

bool parser_grouping(struct parser *p, const char *includes, const char *excludes, struct grouping *g)
{
    if (!parser_is_word(p, includes) && !parser_is_word(p, excludes))
        return true;
    if (g->is_given)
        return parser_fail(p, "only one by or without");
    g->is_given = true;
    g->excludes = parser_is_word(p, excludes);
    return parser_next(p) && parser_labels(p, g);
}
