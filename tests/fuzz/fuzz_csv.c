/* Any bytes as lines of columns, with commas or tabs, and with one column or several. */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_decode.h"

static const char *const steps[] = {"csv:time,host,-,request,status,own", "tsv:ts,target,own,time,-",
                                    "csv:time"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice message = slice_of((const char *)data, size);
    fuzz_steps(steps, COUNT_OF(steps), COUNT_OF(steps), message);
    return 0;
}
