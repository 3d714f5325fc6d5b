/* message_schema.h - the schema that wrote a message, compiled. The registry (registry.h) has those of all
 * ids that were met; a chain decodes by it (ingest/decode/schema_step.h).
 *
 * Owner   : the registry, as long as it is. It does not change: any thread may read it.
 */
#pragma once

#include "ingest/schema/avro_schema.h"
#include "ingest/schema/proto_schema.h"

enum schema_kind { SCHEMA_AVRO, SCHEMA_PROTOBUF, SCHEMA_OTHER };

struct message_schema {
    enum schema_kind kind;      /* SCHEMA_OTHER: of a kind that the asking step does not read */
    struct avro_schema *avro;   /* of a SCHEMA_AVRO */
    struct proto_schema *proto; /* of a SCHEMA_PROTOBUF */
};

void message_schema_free(struct message_schema *s);
