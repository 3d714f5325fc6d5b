/* otlp_result.h - the results of reading a record of OTLP, for otlp.h and otlp_internal.h. */
#pragma once

enum otlp_result { OTLP_EVENT, OTLP_TEXT, OTLP_REJECT, OTLP_END };
