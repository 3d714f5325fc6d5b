/* Any bytes as lines of expressions that users may write, one of them careless. They are interpreted, too,
 * but then take more time. */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_decode.h"

#define LINE_MAX 65536
#define COMBINED                                                                                         \
    "(?<host>\\S+) (?<logname>\\S+) (?<user>.+?) \\[(?<time>[^]]+)\\] \"(?<request>(?:\\\\.|[^\"])*)\" " \
    "(?<status>\\S+) (?<bytes>\\S+)(?: \"(?<referrer>[^\"]*)\" \"(?<agent>.*)\")?"

#define CARELESS "(?<time>.*?) .*(?<target>/\\S*).* (?<own>.*)"

static const char *const steps[] = {"regex:" COMBINED, "regex:" CARELESS, "regex:(*NO_JIT)" COMBINED,
                                    "regex:(*NO_JIT)" CARELESS};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct decode decodes[COUNT_OF(steps)];
    static struct chain *chains[COUNT_OF(steps)];
    struct record r = {.value = slice_of((const char *)data, size), .timestamp_ms = -1};
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        if (chains[i] == NULL)
            chains[i] = fuzz_chain_of(&decodes[i], steps[i], NULL, LINE_MAX);
        (i < 2 ? fuzz_decode_in_time : fuzz_decode)(chains[i], &decodes[i], &r);
    }
    return 0;
}
