"""Runs one of the SQL files here in ClickHouse local (package chdb) on a log file.

    python clickhouse.py QUERY.sql LOG                 prints cells, hits, bytes, seconds of import and query as JSON
    python clickhouse.py QUERY.sql LOG --with p99,hosts    also calculates these columns, of which nothing is printed
    python clickhouse.py QUERY.sql LOG --rows OUT      writes path<TAB>YYYY-MM-DDTHH:MM<TAB>hits<TAB>bytes
"""

import json
import sys
import time


def main():
    sql_path, log_path = sys.argv[1:3]
    rows_path = sys.argv[4] if sys.argv[3:4] == ["--rows"] else None
    others = "".join(f", sum({name})" for name in sys.argv[4].split(",")) if sys.argv[3:4] == ["--with"] else ""
    start = time.monotonic()
    import chdb  # here, so that its start-up is measured apart from the query

    ready = time.monotonic()
    with open(sql_path, encoding="utf-8") as file:
        cells = file.read().replace("{FILE}", log_path)
    if rows_path:
        at = "formatDateTime(parseDateTime(minute, '%d/%b/%Y:%H:%i', 'UTC'), '%Y-%m-%dT%H:%i', 'UTC')"
        chdb.query(
            f"SELECT path, {at}, hits, bytes FROM ({cells}) INTO OUTFILE '{rows_path}' TRUNCATE FORMAT TSVRaw"
        )
        return
    answer = chdb.query(f"SELECT count(), sum(hits), sum(bytes){others} FROM ({cells})", "TSV")
    totals = [int(field) for field in str(answer).split()[:3]]
    print(
        json.dumps(
            {
                "totals": totals,
                "import_s": ready - start,
                "query_s": time.monotonic() - ready,
                "version": chdb.engine_version,
            }
        )
    )


main()
