/* avro_schema.h - a schema of Avro, compiled for decoding. The registry and the configuration make it from
 * its text; ingest/decode/avro.c reads data by it.
 *
 * Nodes   : a schema is a list of nodes; `root` is that of the whole datum. Nodes refer to each other by
 *           index, so a type may contain itself. No node is deeper than AVRO_DEPTH_MAX in the text.
 * Labels  : names are kept as JSON has them, since data are written as JSON.
 * Logical : types that this reader does not know are read as the type below them, as the specification says.
 * Owner   : avro_schema_free() frees. It does not change once it is made: any thread may read it.
 * Errors  : EX_DATAERR: the text is no schema, or too large; EX_OSFILE: libjansson is missing.
 * Source  : the Apache Avro specification 1.11.
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"
#include "base/text.h"

#include <stdint.h>

#define AVRO_DEPTH_MAX 64
#define AVRO_NODES_MAX 65536
#define AVRO_PARTS_MAX 262144 /* fields, branches of unions and symbols */

enum avro_kind {
    AVRO_NULL,
    AVRO_BOOLEAN,
    AVRO_INT,
    AVRO_LONG,
    AVRO_FLOAT,
    AVRO_DOUBLE,
    AVRO_BYTES,
    AVRO_STRING,
    AVRO_PRIMITIVE_COUNT,
    AVRO_FIXED = AVRO_PRIMITIVE_COUNT,
    AVRO_ENUM,
    AVRO_ARRAY,
    AVRO_MAP,
    AVRO_UNION,
    AVRO_RECORD
};

/* How a number or bytes are written as JSON. */
enum avro_form {
    AVRO_PLAIN,
    AVRO_DATE,    /* days since 1970, as 2010-10-10 */
    AVRO_SECONDS, /* a number of 10^-scale seconds */
    AVRO_DECIMAL, /* bytes, a number of 10^-scale */
    AVRO_UUID     /* 16 bytes */
};

struct avro_node {
    enum avro_kind kind;
    enum avro_form form;
    uint32_t scale; /* number of decimals of AVRO_SECONDS or AVRO_DECIMAL */
    uint32_t first; /* first part; of an array or map, the node of its elements */
    uint32_t count; /* number of parts; of a fixed, of bytes */
};

/* A field of a record, a branch of a union, or a symbol of an enum. */
struct avro_part {
    uint32_t label_at, label_len; /* in `labels`: a field's name and colon, a symbol; in quotes */
    uint32_t node;                /* not of a symbol */
};

struct avro_schema {
    struct avro_node *nodes;
    struct avro_part *parts;
    struct text labels;
    size_t node_count, node_capacity, part_count, part_capacity;
    uint32_t root;
};

/* Compiles the last text. The types that earlier texts define are known in later ones. NULL: *e says why. */
struct avro_schema *avro_schema_new(const struct slice *texts, size_t count, struct err *e) MUST_CHECK;
void avro_schema_free(struct avro_schema *s);
