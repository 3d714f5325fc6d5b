/* proto_descriptor.h - turns a compiled .proto file back into its text. Some serialisers register it as it
 * is, a FileDescriptorProto in base64, and some registries give it out so. proto_schema.c calls it.
 *
 * Content : what decoding needs. Options, comments and defaults are left out.
 * Order   : of messages and enums, and of the maps between them, as in the file: numbers of messages depend
 *           on it.
 * Source  : descriptor.proto of Protocol Buffers.
 */
#pragma once

#include "base/slice.h"
#include "base/text.h"

#include <stdbool.h>

/* Is it base64, and not the text of a file? */
bool proto_is_descriptor(struct slice text);
/* Adds the text. False: it is no descriptor. Pre: proto_is_descriptor(). */
bool proto_descriptor_text(struct slice base64, struct text *out);
