/* load.h - reads integers that stand in bytes, at any address. Scanners and readers of binary files call it.
 *
 * load64() and its like read in the byte order of the computer, load_be32() the highest byte first.
 */
#pragma once

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t load16(const char *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint32_t load32(const char *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint64_t load64(const char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint32_t load_be32(const unsigned char *p)
{
    return be32toh(load32((const char *)p));
}
