#include "base/check.h"
#include "config/config_read.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A good configuration, printed, reads back to the same; a bad one says why, line by line. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct text problems = {0}, once = {0}, twice = {0};
    struct config *c = config_parse(slice_of((const char *)data, size), "fuzz", &problems);
    ASSERT((c == NULL) == (problems.len > 0));
    if (c != NULL) {
        config_print(c, false, &once);
        struct config *again = config_parse(text_slice(&once), "printed", &problems);
        ASSERT(again != NULL);
        config_print(again, false, &twice);
        ASSERT(slice_equal(text_slice(&once), text_slice(&twice)));
        config_free(again);
    } else {
        ASSERT(problems.ptr[problems.len - 1] == '\n' && strlen(problems.ptr) == problems.len);
    }
    config_free(c);
    text_fini(&problems);
    text_fini(&once);
    text_fini(&twice);
    return 0;
}
