"""Shared by the tests with a schema registry: lines in records of Avro. Its import ends a program as skipped without fastavro."""

import datetime
import io
import os
import sys

from kafkacase import Feed, ROOT

sys.path.insert(0, os.path.join(ROOT, "tests", "servers"))
import process  # noqa: E402 (found only now)
import schemas  # noqa: E402

try:
    schemas.install()
    import fastavro
except (process.Missing, ImportError) as error:
    print(f"skipped: {error}")
    sys.exit(77)

NOW = datetime.datetime(2026, 1, 5, tzinfo=datetime.timezone.utc)

# Three versions of one record; each writer has its own.
VERSIONS = [
    {"type": "record", "name": "Line", "fields": [{"name": "message", "type": "string"}]},
    {"type": "record", "name": "Line", "fields": [
        {"name": "host", "type": ["null", "string"]},
        {"name": "message", "type": ["string", "null"]},
        {"name": "tags", "type": {"type": "map", "values": "long"}}]},
    {"type": "record", "name": "Line", "fields": [
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "levels", "type": {"type": "array", "items": {"type": "enum", "name": "Level", "symbols": ["low", "high"]}}},
        {"name": "message", "type": "string"}]}]


def encoded(schema, value):
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


class AvroFeed(Feed):
    """Lines in records, by the schemas of `ids`. A bad one is a line without a record, or a record with no line in it."""

    def __init__(self, case, registry, ids=None, **options):
        super().__init__(case, decode="avro, json:/message, combined", wrap=self.in_record, **options)
        self.ids, self.parsed = ids or (1, 2, 3), [fastavro.parse_schema(version) for version in VERSIONS]
        for number, version in zip(self.ids, VERSIONS):
            if not ids:
                registry.add(number, version)

    def in_record(self, line):
        chosen = self.dice.randrange(len(self.ids))
        value = {"message": line.decode(), "host": self.dice.choice([None, "a"]), "tags": {"a": 1, "b": -2}, "at": NOW,
                 "levels": ["low", "high"][:self.dice.randrange(3)]}
        out = io.BytesIO()
        fastavro.schemaless_writer(out, self.parsed[chosen],
                                   {field["name"]: value[field["name"]] for field in VERSIONS[chosen]["fields"]})
        return schemas.framed(self.ids[chosen], out.getvalue())
