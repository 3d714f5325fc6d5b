#include "web/remote.h"

#include "base/snappy.h"
#include "prom/remote_read.h"

#include <sysexits.h>

bool remote_is(const char *path)
{
    return strcmp(path, REMOTE_PATH) == 0;
}

/* A request that is wrong is a question that is wrong. */
static bool is_of_request(const struct err *e)
{
    return e->code == EX_PROTOCOL || api_is_of_question(e);
}

static void fail(struct reply *rp, struct err *e)
{
    if (e->code == EX_PROTOCOL)
        e->code = EX_USAGE;
    api_fail(rp, e);
}

static bool read_packed(struct api *api, struct store *st, struct slice body, struct text *out, struct err *e)
{
    const struct query_limits limits = api_limits(api);
    const struct remote_limits remote = {.rows_max = limits.rows_max,
                                         .sketches_max = limits.sketches_max,
                                         .bytes_max =
                                             limits.bytes_max > 0 ? limits.bytes_max / 2 : UINT64_MAX,
                                         .now_ms = clock_wall_ms(api->clock)};
    struct text request = {0};
    bool good = snappy_unpack(body, REMOTE_REQUEST_BYTES, &request, e) &&
                remote_read(st, text_slice(&request), &remote, out, e) && snappy_pack(out, e);
    text_fini(&request);
    return good;
}

void remote_answer(struct api *api, struct slice body, struct reply *rp)
{
    struct err e = {0};
    struct store *st = readers_take(&api->readers, rp->deadline, rp->memory, &e);
    if (st == NULL) {
        fail(rp, &e);
        return;
    }
    bool good = read_packed(api, st, body, &rp->body, &e);
    readers_give(&api->readers, st, good || is_of_request(&e));
    if (!good) {
        fail(rp, &e);
        return;
    }
    rp->code = 200;
    rp->type = REMOTE_TYPE;
    rp->coding = "snappy";
}
