/* Any bytes as lines of expressions that users may write, one of them careless. They are interpreted, too,
 * but then take more time. */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_decode.h"

#define COMBINED                                                                                         \
    "(?<host>\\S+) (?<logname>\\S+) (?<user>.+?) \\[(?<time>[^]]+)\\] \"(?<request>(?:\\\\.|[^\"])*)\" " \
    "(?<status>\\S+) (?<bytes>\\S+)(?: \"(?<referrer>[^\"]*)\" \"(?<agent>.*)\")?"

#define CARELESS "(?<time>.*?) .*(?<target>/\\S*).* (?<own>.*)"

static const char *const steps[] = {"regex:" COMBINED, "regex:" CARELESS, "regex:(*NO_JIT)" COMBINED,
                                    "regex:(*NO_JIT)" CARELESS};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice message = slice_of((const char *)data, size);
    fuzz_steps(steps, COUNT_OF(steps), 2, message);
    return 0;
}
