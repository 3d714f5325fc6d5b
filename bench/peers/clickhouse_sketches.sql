-- Hits, p99 of the duration and hosts by (path without its query string, minute), with a line split at its spaces, but only as far
-- as the duration, behind the bytes. The minute stays text.
SELECT path, minute, count() AS hits, sum(bytes) AS bytes, quantileTDigest(0.99)(duration) AS p99, uniq(host) AS hosts
FROM
(
    SELECT
        splitByChar(' ', line, 11) AS f,
        f[1] AS host,
        cutQueryString(f[7]) AS path,
        substring(f[4], 2, 17) AS minute,
        toUInt64OrZero(f[10]) AS bytes,
        toUInt32OrZero(f[11]) AS duration
    FROM file('{FILE}', LineAsString)
)
GROUP BY path, minute
