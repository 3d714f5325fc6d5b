-- Of each {NAME}: exact quantiles of the sizes, and the number of different hosts. No share × count is a whole number, so that a
-- quantile is one number, whatever the rule.
SELECT {NAME} AS name, quantilesExactIf({SHARES})(toUInt64OrZero(f[6]), f[6] != '-') AS sizes, countIf(f[6] != '-') AS sized,
       uniqExact(f[1]) AS hosts
FROM
(
    SELECT extractGroups(line, '^(\\S+) \\S+ (\\S+) \\[(\\d+)/May/2015:(\\d+):\\S+ \\S+ "\\S+ ([^ ?"]+)[^"]*" \\d+ (\\S+)') AS parts,
           [parts[1], parts[3], parts[4], parts[5], '', parts[6]] AS f
    FROM file('{FILE}', LineAsString)
    WHERE length(parts) > 0
)
GROUP BY name
