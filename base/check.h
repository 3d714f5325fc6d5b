/* check.h - the assertions that stay on in every build, and compiler attributes.
 *
 * Why   : a bug must stop the daemon before it writes a wrong number; systemd restarts it, and the
 *         store's exactly-once protocol makes the restart harmless.
 * Rule  : only for bugs. Bad input is a result, a counter and a sample (reject.h); trouble with the
 *         outside world is a struct err (err.h).
 */
#pragma once

#define MUST_CHECK             __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
#define LIKELY(x)              __builtin_expect(!!(x), 1)
#define UNLIKELY(x)            __builtin_expect(!!(x), 0)
/* A function that is never inlined: a loop keeps its variables in registers, or a rare step costs its caller
 * none. */
#define APART                  __attribute__((noinline))
#define COUNT_OF(array)        (sizeof(array) / sizeof((array)[0]))

_Noreturn void check_failed(const char *text, const char *file, int line, const char *function);

#define ASSERT(x) ((void)(LIKELY(x) || (check_failed(#x, __FILE__, __LINE__, __func__), 0)))
