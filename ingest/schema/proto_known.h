/* proto_known.h - the types of Google's that every .proto file may import. proto_schema.c parses them. */
#pragma once

#define PROTO_KNOWN                                                                                          \
    "syntax = \"proto3\"; package google.protobuf;\n"                                                        \
    "message Timestamp { int64 seconds = 1; int32 nanos = 2; }\n"                                            \
    "message Duration { int64 seconds = 1; int32 nanos = 2; }\n"                                             \
    "message DoubleValue { double value = 1; }\n"                                                            \
    "message FloatValue { float value = 1; }\n"                                                              \
    "message Int64Value { int64 value = 1; }\n"                                                              \
    "message UInt64Value { uint64 value = 1; }\n"                                                            \
    "message Int32Value { int32 value = 1; }\n"                                                              \
    "message UInt32Value { uint32 value = 1; }\n"                                                            \
    "message BoolValue { bool value = 1; }\n"                                                                \
    "message StringValue { string value = 1; }\n"                                                            \
    "message BytesValue { bytes value = 1; }\n"                                                              \
    "message Empty {}\n"                                                                                     \
    "message Any { string type_url = 1; bytes value = 2; }\n"                                                \
    "message FieldMask { repeated string paths = 1; }\n"                                                     \
    "enum NullValue { NULL_VALUE = 0; }\n"                                                                   \
    "message Struct { map<string, Value> fields = 1; }\n"                                                    \
    "message Value { oneof kind { NullValue null_value = 1; double number_value = 2; string string_value = " \
    "3;\n"                                                                                                   \
    "  bool bool_value = 4; Struct struct_value = 5; ListValue list_value = 6; } }\n"                        \
    "message ListValue { repeated Value values = 1; }\n"
