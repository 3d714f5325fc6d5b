#include "web/assets.h"

/* The Makefile names these files too, so that a change of one rebuilds this file. */
#define EMBED(symbol, file)                                                                            \
    extern const char symbol[], symbol##_end[];                                                        \
    __asm__(".pushsection .rodata\n.balign 16\n.global " #symbol "\n.global " #symbol "_end\n" #symbol \
            ":\n.incbin \"" file "\"\n" #symbol "_end:\n.byte 0\n.popsection\n")

EMBED(asset_page_html, "web/page.html");
EMBED(asset_page_css, "web/page.css");
EMBED(asset_page_js, "web/page.js");
EMBED(asset_dom_js, "web/dom.js");
EMBED(asset_range_js, "web/range.js");
EMBED(asset_chart_js, "web/chart.js");
EMBED(asset_heatmap_js, "web/heatmap.js");
EMBED(asset_tables_js, "web/tables.js");
EMBED(asset_promql_js, "web/promql.js");
EMBED(asset_rejects_js, "web/rejects.js");
EMBED(asset_icon_svg, "web/icon.svg");
EMBED(asset_dygraph_css, DYGRAPHS "/dygraph.min.css");
EMBED(asset_dygraph_js, DYGRAPHS "/dygraph.min.js");

#define ASSET(url, symbol, mime)                          \
    {                                                     \
        .path = url, .type = mime, .bytes = { symbol, 0 } \
    }

static struct asset assets[] = {
    ASSET("/", asset_page_html, "text/html; charset=utf-8"),
    ASSET("/page.css", asset_page_css, "text/css; charset=utf-8"),
    ASSET("/page.js", asset_page_js, "text/javascript; charset=utf-8"),
    ASSET("/dom.js", asset_dom_js, "text/javascript; charset=utf-8"),
    ASSET("/range.js", asset_range_js, "text/javascript; charset=utf-8"),
    ASSET("/chart.js", asset_chart_js, "text/javascript; charset=utf-8"),
    ASSET("/heatmap.js", asset_heatmap_js, "text/javascript; charset=utf-8"),
    ASSET("/tables.js", asset_tables_js, "text/javascript; charset=utf-8"),
    ASSET("/promql.js", asset_promql_js, "text/javascript; charset=utf-8"),
    ASSET("/rejects.js", asset_rejects_js, "text/javascript; charset=utf-8"),
    ASSET("/icon.svg", asset_icon_svg, "image/svg+xml"),
    ASSET("/dygraph.min.css", asset_dygraph_css, "text/css; charset=utf-8"),
    ASSET("/dygraph.min.js", asset_dygraph_js, "text/javascript; charset=utf-8"),
};

/* Packs an asset; the memory is never freed. */
static struct slice pack(struct slice bytes)
{
    struct text packed = {0};
    bool shorter = bytes.len >= ENCODE_BYTES_MIN && encode_gzip(bytes, ENCODE_SMALL, &packed);
    return shorter ? text_slice(&packed) : (struct slice){0};
}

void assets_init(void)
{
    const char *const ends[COUNT_OF(assets)] = {
        asset_page_html_end, asset_page_css_end,   asset_page_js_end,    asset_dom_js_end,
        asset_range_js_end,  asset_chart_js_end,   asset_heatmap_js_end, asset_tables_js_end,
        asset_promql_js_end, asset_rejects_js_end, asset_icon_svg_end,   asset_dygraph_css_end,
        asset_dygraph_js_end};
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
