#include "web/assets.h"

/* The Makefile names these files too, so that a change of one rebuilds this file. */
#define EMBED(symbol, file)                                                                            \
    extern const char symbol[], symbol##_end[];                                                        \
    __asm__(".pushsection .rodata\n.balign 16\n.global " #symbol "\n.global " #symbol "_end\n" #symbol \
            ":\n.incbin \"" file "\"\n" #symbol "_end:\n.byte 0\n.popsection\n")

#define HTML "text/html; charset=utf-8"
#define CSS  "text/css; charset=utf-8"
#define JS   "text/javascript; charset=utf-8"

/* X(symbol, file, URL, type) for each asset. */
#define ASSETS(X)                                                        \
    X(page_html, "web/page.html", "/", HTML)                             \
    X(page_css, "web/page.css", "/page.css", CSS)                        \
    X(page_js, "web/page.js", "/page.js", JS)                            \
    X(dom_js, "web/dom.js", "/dom.js", JS)                               \
    X(range_js, "web/range.js", "/range.js", JS)                         \
    X(chart_js, "web/chart.js", "/chart.js", JS)                         \
    X(heatmap_js, "web/heatmap.js", "/heatmap.js", JS)                   \
    X(tables_js, "web/tables.js", "/tables.js", JS)                      \
    X(promql_js, "web/promql.js", "/promql.js", JS)                      \
    X(rejects_js, "web/rejects.js", "/rejects.js", JS)                   \
    X(icon_svg, "web/icon.svg", "/icon.svg", "image/svg+xml")            \
    X(dygraph_css, DYGRAPHS "/dygraph.min.css", "/dygraph.min.css", CSS) \
    X(dygraph_js, DYGRAPHS "/dygraph.min.js", "/dygraph.min.js", JS)

#define EMBEDDED(symbol, file, url, mime) EMBED(asset_##symbol, file);
#define ASSET(symbol, file, url, mime)    {.path = url, .type = mime, .bytes = {asset_##symbol, 0}},
#define END(symbol, file, url, mime)      asset_##symbol##_end,

ASSETS(EMBEDDED)

static struct asset assets[] = {ASSETS(ASSET)};
static const char *const ends[] = {ASSETS(END)};

/* Packs an asset; the memory is never freed. */
static struct slice pack(struct slice bytes)
{
    struct text packed = {0};
    bool shorter = bytes.len >= ENCODE_BYTES_MIN && encode_gzip(bytes, ENCODE_SMALL, &packed);
    return shorter ? text_slice(&packed) : (struct slice){0};
}

void assets_init(void)
{
    for (size_t i = 0; i < COUNT_OF(assets) && assets[i].bytes.len == 0; i++) {
        struct asset *a = &assets[i];
        a->bytes.len = (size_t)(ends[i] - a->bytes.ptr);
        encode_tag(a->bytes, a->etag);
        a->packed = pack(a->bytes);
    }
}

const struct asset *assets_find(const char *path)
{
    for (size_t i = 0; i < COUNT_OF(assets); i++) {
        if (strcmp(assets[i].path, path) == 0)
            return &assets[i];
    }
    return NULL;
}
