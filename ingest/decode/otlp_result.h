/* otlp_result.h - the results of reading a record of OTLP: otlp.h hands them to chain.c, otlp_internal.h within. */
#pragma once

enum otlp_result { OTLP_EVENT, OTLP_TEXT, OTLP_REJECT, OTLP_END };
