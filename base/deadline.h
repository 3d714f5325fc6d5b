/* deadline.h - until when a question is answered: until a time, while its asker waits, and while nobody
 * cancels it. Loops of long work look at it. Set by web/, heeded by store/, query/ and prom/.
 *
 * Looks   : a look reads the clock. At most each DEADLINE_LOOK_MS it also asks whether the asker is there.
 * Threads : the thread of the question looks; any thread may cancel.
 */
#pragma once

#include "base/clock.h"
#include "base/err.h"

#define DEADLINE_LOOK_MS 50

enum deadline_end { DEADLINE_GOES_ON, DEADLINE_PASSED, DEADLINE_LEFT, DEADLINE_CANCELLED };

struct deadline {
    const struct clock *clock;
    int64_t at_ms, begun_ms;      /* monotonic */
    bool (*is_left)(void *asker); /* NULL: the asker cannot leave */
    void *asker;
    int64_t look_ms; /* when to ask for the asker again */
    atomic_bool cancelled;
    enum deadline_end end; /* stays once it is set */
};

/* `for_ms` from now. */
void deadline_init(struct deadline *d, const struct clock *clock, int64_t for_ms);
void deadline_cancel(struct deadline *d);
/* NULL is never over. */
bool deadline_is_over(struct deadline *d);
/* As deadline_is_over(); false: it is over, and the error says why. EX_TEMPFAIL, retryable. */
bool deadline_check(struct deadline *d, struct err *e) MUST_CHECK;
