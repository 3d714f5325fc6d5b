-- Hits and bytes by (path without its query string, minute), with every line split at its spaces.
-- The minute stays text, "05/Jan/2026:00:00": parsing it into a DateTime doubled the time.
SELECT path, minute, count() AS hits, sum(bytes) AS bytes
FROM
(
    SELECT
        splitByChar(' ', line) AS f,
        cutQueryString(f[7]) AS path,
        substring(f[4], 2, 17) AS minute,
        toUInt64OrZero(f[10]) AS bytes
    FROM file('{FILE}', LineAsString)
)
GROUP BY path, minute
