#include "aggregate/witness.h"

#include <string.h>

/* The witness whose removal leaves the smallest hole, relative to its distance from the newest. So the others
 * keep about doubling distances. The oldest always stays. */
static uint32_t find_least(const struct witnesses *w)
{
    uint32_t least = 1;
    double smallest = 0;
    int64_t newest = w->at[w->count - 1].offset;
    for (uint32_t i = 1; i < w->count - WITNESSES_RECENT; i++) {
        double hole =
            (double)(w->at[i + 1].offset - w->at[i - 1].offset) / (double)(newest - w->at[i].offset);
        if (i == 1 || hole < smallest) {
            smallest = hole;
            least = i;
        }
    }
    return least;
}

void witnesses_add(struct witnesses *w, int64_t offset, uint64_t hash)
{
    if (w->count > 0 && offset <= w->at[w->count - 1].offset)
        return;
    if (w->count == WITNESSES_MAX) {
        uint32_t least = find_least(w);
        w->count--;
        memmove(&w->at[least], &w->at[least + 1], (w->count - least) * sizeof w->at[0]);
    }
    w->at[w->count++] = (struct witness){offset, hash};
}

static void put(unsigned char *bytes, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(value >> (8 * i));
}

static uint64_t get(const char *bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value |= (uint64_t)(unsigned char)bytes[i] << (8 * i);
    return value;
}

size_t witnesses_pack(const struct witnesses *w, unsigned char bytes[WITNESSES_MAX * WITNESS_BYTES])
{
    for (uint32_t i = 0; i < w->count; i++) {
        put(bytes + i * WITNESS_BYTES, (uint64_t)w->at[i].offset);
        put(bytes + i * WITNESS_BYTES + 8, w->at[i].hash);
    }
    return w->count * WITNESS_BYTES;
}

bool witnesses_unpack(struct witnesses *w, struct slice bytes)
{
    uint32_t count = (uint32_t)(bytes.len / WITNESS_BYTES);
    w->count = 0;
    if (bytes.len % WITNESS_BYTES != 0 || bytes.len > WITNESSES_MAX * WITNESS_BYTES)
        return false;
    for (uint32_t i = 0; i < count; i++)
        w->at[i] = (struct witness){(int64_t)get(bytes.ptr + i * WITNESS_BYTES),
                                    get(bytes.ptr + i * WITNESS_BYTES + 8)};
    for (uint32_t i = 0; i < count; i++) {
        if (w->at[i].offset < 0 || (i > 0 && w->at[i].offset <= w->at[i - 1].offset))
            return false;
    }
    w->count = count;
    return true;
}
