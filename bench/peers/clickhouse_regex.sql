-- Hits and bytes by (path without its query string, minute), with one regular expression for the combined format:
-- host, user, minute, method, path, protocol, status, bytes, referrer, agent.
SELECT path, minute, count() AS hits, sum(bytes) AS bytes
FROM
(
    SELECT
        extractGroups(line, '^(\\S+) \\S+ (\\S+) \\[([^:]+:\\d+:\\d+):\\d+ [^\\]]+\\] "(\\S+) ([^ ?]+)\\S* (\\S+)" (\\d+) (\\S+) "([^"]*)" "([^"]*)"$') AS f,
        f[5] AS path,
        f[3] AS minute,
        toUInt64OrZero(f[8]) AS bytes
    FROM file('{FILE}', LineAsString)
)
GROUP BY path, minute
