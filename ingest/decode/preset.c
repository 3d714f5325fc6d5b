#include "ingest/decode/preset.h"

#include <stddef.h>

/* clang-format off */

/* Parts of expressions. What ABSENT names as `sign` is left out, so that the field is absent. */
#define ABSENT(sign, group) "(?:" sign "|" group ")"
#define WORD(name)          "(?<" name ">\\S+)"
#define NUMBER(name)        "(?<" name ">\\d+)"
#define SECONDS(name)       ABSENT("-1", "(?<" name ">[\\d.]+)")
#define MILLISECONDS(name)  ABSENT("-1", NUMBER(name))
#define QUOTED(name)        "\"(?<" name ">(?:[^\"\\\\]++|\\\\.)*+)\""
#define BRACKETED_TIME      "\\[(?<time>[^\\]]+)\\]"
#define CLIENT              "\\[?(?<host>[^\\]\\s]+)\\]?:\\d+"
/* A target has no space, whatever else is in it. */
#define REQUEST             "\"(?<request>[^ \"]* [^ ]*(?: [^ \"]*)?)\""

/* Classic and application load balancers: the request has the whole address. */
#define BALANCER_REQUEST \
    "\"(?<method>[^ \"]*) " \
    "(?:[a-z]+://(?<vhost>\\[[^\\]]*\\]|[^/:\" ]*)(?::\\d*)?)?(?<target>[^ ]*) " \
    "(?<protocol>[^\" ]*) ?\""
#define BALANCER(target) \
    WORD("time") " " WORD("balancer") " " CLIENT " " ABSENT("-", WORD("backend")) " " \
    SECONDS("request_processing_time") " " SECONDS(target "_processing_time") " " \
    SECONDS("response_processing_time") " " \
    WORD("status") " " ABSENT("-", NUMBER(target "_status")) " " \
    NUMBER("bytes_received") " " NUMBER("bytes") " " \
    BALANCER_REQUEST
/* Classic load balancers write these since 2015. */
#define BALANCER_CLIENT QUOTED("agent") " \\S+ " ABSENT("-", WORD("ssl_protocol"))

/* A frontend's name with a `~` behind is one of TLS. Lines of TCP have three times and neither a status nor
 * a request. The slashes are between counts of connections and of queues. */
#define HAPROXY \
    "(?:.{0,256}?\\[\\d+\\]: )?" CLIENT " " BRACKETED_TIME " " \
    "(?<frontend>[^ ~]+)~? (?<backend>[^ /]+)/" ABSENT("<[A-Z]+>", WORD("server")) " " \
    "(?:(?=(?:[^/ ]+/){4})" MILLISECONDS("request_ms") "/)?" \
    MILLISECONDS("queue_ms") "/" MILLISECONDS("connect_ms") "/" \
    "(?:" MILLISECONDS("response_ms") "/)?" "\\+?" MILLISECONDS("total_ms") " " \
    "(?:" ABSENT("-1", NUMBER("status")) " )?\\+?" NUMBER("bytes") " (?:\\S+ \\S+ )?" \
    "(?<termination>\\S{2,4}) \\d+/\\d+/\\d+/\\d+/\\+?\\d+ \\d+/\\d+" \
    "(?: \\{[^}]*\\})*(?: \"(?<request>[^\"]*).*)?"

#define S3 \
    "\\S+ " WORD("bucket") " " BRACKETED_TIME " " WORD("host") " " ABSENT("-", WORD("user")) " \\S+ " \
    WORD("operation") " " ABSENT("-", WORD("key")) " " ABSENT("-", REQUEST) " " \
    WORD("status") " " ABSENT("-", WORD("error")) " " WORD("bytes") " " \
    ABSENT("-", NUMBER("object_size")) " " \
    ABSENT("-", NUMBER("total_ms")) " " ABSENT("-", NUMBER("turnaround_ms")) " " \
    ABSENT("-", QUOTED("referrer")) " " ABSENT("-", QUOTED("agent")) "(?: .*)?"

#define TRAEFIK \
    WORD("host") " - (?<user>[^\\[]+) " BRACKETED_TIME " " REQUEST " " WORD("status") " " WORD("bytes") " " \
    QUOTED("referrer") " " QUOTED("agent") " (?:-|\\d+) " \
    ABSENT("\"-\"", QUOTED("router")) " " ABSENT("\"-\"", QUOTED("backend")) " " NUMBER("total_ms") "ms"

/* clang-format on */

const struct preset presets[] = {
    {.name = "alb",
     .step = "regex:" WORD("type") " " BALANCER("target") " " BALANCER_CLIENT
                                                          " " ABSENT("-", WORD("target_group")) " .*"},
    {.name = "caddy",
     .step = "json",
     .fields = {{"vhost", "/request/host"},
                {"host", "/request/remote_ip"},
                {"user", "/user_id"},
                {"method", "/request/method"},
                {"target", "/request/uri"},
                {"protocol", "/request/proto"},
                {"bytes", "/size"},
                {"bytes_received", "/bytes_read"},
                {"referrer", "/request/headers/Referer/0"},
                {"agent", "/request/headers/User-Agent/0"},
                {"duration", "/duration"}}},
    {.name = "elb", .step = "regex:" BALANCER("backend") "(?: " BALANCER_CLIENT ")?"},
    {.name = "haproxy", .step = "regex:" HAPROXY},
    {.name = "s3", .step = "regex:" S3},
    {.name = "traefik", .step = "regex:" TRAEFIK},
    {.name = "traefik_json",
     .step = "json",
     .fields = {{"vhost", "/RequestHost"},
                {"host", "/ClientHost"},
                {"user", "/ClientUsername"},
                {"method", "/RequestMethod"},
                {"target", "/RequestPath"},
                {"protocol", "/RequestProtocol"},
                {"status", "/DownstreamStatus"},
                {"bytes", "/DownstreamContentSize"},
                {"referrer", "/request_Referer"},
                {"agent", "/request_User-Agent"},
                {"router", "/RouterName"},
                {"backend", "/ServiceName"},
                {"duration_ns", "/Duration"}}},
    {.name = NULL},
};

const struct preset *preset_find(struct slice name)
{
    for (const struct preset *p = presets; p->name != NULL; p++) {
        if (slice_is(name, p->name))
            return p;
    }
    return NULL;
}
