/* chain_result.h - the results of reading a record, for chain.h and chain_internal.h. */
#pragma once

enum chain_result { CHAIN_EVENT, CHAIN_REJECT, CHAIN_DIRECTIVE, CHAIN_END };
