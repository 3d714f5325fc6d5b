# path_minute.awk - hits and bytes by (path without its query string, minute): what tallyd is measured against.
#
#   LC_ALL=C mawk -f path_minute.awk FILE              prints "cells hits bytes"
#   LC_ALL=C mawk -v rows=1 -f path_minute.awk FILE    prints path<TAB>YYYY-MM-DDTHH:MM<TAB>hits<TAB>bytes
#
# The fastest of several forms that were tried. A line is split at its quotes, so that the words of the agent are
# never split; and a cell is one number, hits × 2^40 + bytes, since a second array costs as much again. That number is
# exact up to 2^53, which END checks. Times are taken as written: the log's zone must be +0000. Bytes of "-" are 0.
BEGIN {
    FS = "\""
    unit = 2 ^ 40
}
{
    split($2, request, " ")
    path = request[2]
    if (query = index(path, "?"))
        path = substr(path, 1, query - 1)
    split($3, reply, " ")
    packed[substr($1, index($1, "[") + 1, 17) path] += unit + reply[2]
}
END {
    for (cell in packed) {
        if (packed[cell] > 2 ^ 53) {
            print "path_minute.awk: a cell is too large to be exact" > "/dev/stderr"
            exit 1
        }
        hits = int(packed[cell] / unit)
        bytes = packed[cell] - hits * unit
        if (rows) {
            month = (index("JanFebMarAprMayJunJulAugSepOctNovDec", substr(cell, 4, 3)) + 2) / 3
            printf "%s\t%s-%02d-%sT%s\t%d\t%.0f\n", substr(cell, 18), substr(cell, 8, 4), month,
                substr(cell, 1, 2), substr(cell, 13, 5), hits, bytes
        }
        cells++
        hits_total += hits
        bytes_total += bytes
    }
    if (!rows)
        printf "%d %d %.0f\n", cells, hits_total, bytes_total
}
