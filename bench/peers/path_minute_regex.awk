# path_minute_regex.awk - as path_minute.awk, but all fields of a line of combined are split by regular expressions.
#
#   LC_ALL=C mawk -f path_minute_regex.awk FILE    prints "cells hits bytes"
BEGIN {
    FS = " \\[|\\] \"|\" \"|\" | \"|\"$"
    unit = 2 ^ 40
}
{
    split($1, who, / /)
    split($3, request, / /)
    split($4, reply, / /)
    path = request[2]
    sub(/\?.*/, "", path)
    packed[substr($2, 1, 17) path] += unit + reply[2]
}
END {
    for (cell in packed) {
        if (packed[cell] > 2 ^ 53) {
            print "path_minute_regex.awk: a cell is too large to be exact" > "/dev/stderr"
            exit 1
        }
        hits = int(packed[cell] / unit)
        cells++
        hits_total += hits
        bytes_total += packed[cell] - hits * unit
    }
    printf "%d %d %.0f\n", cells, hits_total, bytes_total
}
