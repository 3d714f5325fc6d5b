"""The bucket of a number, by whole numbers, so that it is exact: the judge of histograms."""

import functools
import math

MILLION = 10**6


@functools.lru_cache(10**5)
def index_of(millionths, schema):
    """The least i for which a number above 0 is at most 2^(i/2^schema). With schema 4: n^16 <= 2^i * 10^96."""
    power, one = millionths**2**schema, MILLION**2**schema
    index = math.floor(2**schema * math.log2(millionths / MILLION)) - 2
    while power << max(0, -index) > one << max(0, index):
        index += 1
    return index
