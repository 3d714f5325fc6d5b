#include "ingest/decode/parts.h"

#include "base/check.h"
#include "ingest/decode/chain_field.h"
#include "ingest/scan.h"

static const char *const default_times[PARTS_TIMES_MAX] = {"@timestamp", "timestamp", "time", "ts"};

size_t parts_time_names(const char *pointer, struct slice names[PARTS_TIMES_MAX])
{
    if (pointer[0] != '\0') {
        names[0] = slice_text(pointer + 1);
        return 1;
    }
    for (size_t i = 0; i < PARTS_TIMES_MAX; i++)
        names[i] = slice_text(default_times[i]);
    return PARTS_TIMES_MAX;
}

static bool refuse(struct reject *why, enum reject_reason reason, struct slice line, const char *at)
{
    *why = (struct reject){reason, (size_t)(at - line.ptr) + 1};
    return false;
}

static struct slice text_of(const struct parts *ps, unsigned slot, struct arena *memory)
{
    struct slice text = ps->texts[slot];
    if (LIKELY((ps->escaped[slot / 64] >> slot % 64 & 1) == 0))
        return text;
    char *out = arena_add(memory, text.len);
    return slice_of(out, ps->unescape(text, out));
}

static bool take_time(struct parts *ps, struct slice line, struct arena *memory, struct event *ev,
                      struct reject *why)
{
    enum reject_reason reason;
    for (size_t i = 0; i < ps->time_count; i++) {
        unsigned slot = ps->times[i];
        if ((ps->has[slot / 64] >> slot % 64 & 1) == 0 ||
            event_is_absent(ps->texts[slot].ptr, slice_end(ps->texts[slot])))
            continue;
        return LIKELY(text_time_parse(&ps->time, text_of(ps, slot, memory), &ev->at_ms, &reason)) ||
               refuse(why, reason, line, ps->texts[slot].ptr);
    }
    return refuse(why, REJECT_NO_TIME, line, line.ptr);
}

bool parts_event(struct parts *ps, struct slice line, struct arena *memory, struct event *ev,
                 struct reject *why)
{
    ev->present = ev->odd = ev->literal = ev->numeric = ev->unfit = 0;
    if (ps->time_count > 0 && !take_time(ps, line, memory, ev, why))
        return false;
    /* One look at the line saves one at each of its texts. */
    const bool line_is_plain = !scan_has_odd(line.ptr, slice_end(line));
    /* In the order of enum field, so that explicit fields override derived ones (chain_field_put()). */
    for (uint64_t bits = ps->has[0]; bits != 0; bits &= bits - 1) {
        unsigned f = (unsigned)__builtin_ctzll(bits);
        bool is_plain = line_is_plain && (ps->escaped[0] >> f & 1) == 0;
        enum reject_reason reason = chain_field_put(ev, (enum field)f, text_of(ps, f, memory), is_plain);
        if (UNLIKELY((ev->unfit >> f & 1) != 0) && ps->is_strict)
            reason = f == FIELD_STATUS ? REJECT_STATUS : REJECT_BYTES;
        if (UNLIKELY(reason != REJECT_COUNT))
            return refuse(why, reason, line, ps->texts[f].ptr);
    }
    return true;
}
