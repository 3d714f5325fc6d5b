"""Line charts as SVG, side by side, readable on light and on dark ground: nothing but text is needed to write one."""

import collections
import html
import math

WIDTH, HEIGHT, TOP, BOTTOM, LEFT, RIGHT = 480, 380, 92, 46, 76, 16  # of a panel, and what is around its lines
LEAST = 0.5  # where a logarithmic scale begins: nothing is there, too
STYLE = """\
  .ground { fill: #fcfcfb } .ink { fill: #0b0b0b } .faint { fill: #52514e } .grid { stroke: #e1e0d9 }
  .c0 { stroke: #2a78d6 } .c1 { stroke: #1baf7a } .c2 { stroke: #eb6834 }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #1a1a19 } .ink { fill: #ffffff } .faint { fill: #c3c2b7 } .grid { stroke: #383835 }
    .c0 { stroke: #3987e5 } .c1 { stroke: #199e70 } .c2 { stroke: #d95926 }
  }
  text { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif }
  .title { font-size: 15px; font-weight: 600 } .line { fill: none; stroke-linejoin: round; stroke-linecap: round }
"""
# `colour` 0 to 2; `dash` as of stroke-dasharray; `width` in px. A line that another hides is to be drawn wide, before it.
Look = collections.namedtuple("Look", "label colour width dash", defaults=(2, ""))


def ticks(most, count=5):
    """Round numbers from 0 until `most` is reached."""
    rough = most / count
    unit = 10 ** math.floor(math.log10(rough))
    step = next(unit * times for times in (1, 2, 2.5, 5, 10) if unit * times >= rough)
    return [step * i for i in range(math.ceil(most / step) + 1)]


def powers(most):
    """Those of ten from 1 until `most` is reached."""
    return [10 ** i for i in range(math.ceil(math.log10(most)) + 1)]


def text(x, y, words, kind="faint", anchor="start"):
    return f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}">{html.escape(words)}</text>'


def stroke(look, shape):
    dash = f' stroke-dasharray="{look.dash}"' if look.dash else ""
    return f'<{shape} class="line c{look.colour}" stroke-width="{look.width}"{dash}/>'


def panel(at, title, lines, looks, x_ticks, y_label, is_log):
    """`lines`: by name the (x, y) of its points."""
    y_ticks = (powers if is_log else ticks)(max(y for line in lines.values() for _, y in line))
    left, right, bottom = at + LEFT, at + WIDTH - RIGHT, HEIGHT - BOTTOM

    def place(x, y):
        part = math.log(max(1, y / LEAST), y_ticks[-1] / LEAST) if is_log else y / y_ticks[-1]
        return left + (right - left) * x / x_ticks[-1], bottom - (bottom - TOP) * part

    out = [text(left, TOP - 30, title, "ink title"), text(left, TOP - 12, y_label)]
    for y in y_ticks:
        out.append(f'<path class="grid" d="M{left} {place(0, y)[1]:.1f}H{right}"/>')
        out.append(text(left - 8, place(0, y)[1] + 4, f"{y:,.10g}", anchor="end"))
    out += [text(place(x, 0)[0], bottom + 18, f"{x:g}", anchor="middle") for x in x_ticks]
    for name, look in looks.items():
        points = " ".join("{:.1f},{:.1f}".format(*place(x, y)) for x, y in lines[name])
        out.append(stroke(look, f'polyline points="{points}"'))
    return out


def legend(looks):
    """The shape that is drawn, and its end."""
    out, at = [], LEFT
    for look in looks.values():
        out.append(stroke(look, f'path d="M{at} 24h28"'))
        out.append(text(at + 36, 28, look.label, "ink"))
        at += 56 + round(6.7 * len(look.label))
    return out, at


def line_charts(title, panels, looks, x_ticks, x_label, y_label, is_log=False):
    """`panels`: by title the lines of one, by name; `looks`: of each name."""
    drawn, legend_end = legend(looks)
    width = max(WIDTH * len(panels), legend_end)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{HEIGHT}" viewBox="0 0 {width} {HEIGHT}" '
           'role="img">', f"<title>{html.escape(title)}</title>", f"<style>\n{STYLE}</style>",
           f'<rect class="ground" width="{width}" height="{HEIGHT}"/>', *drawn]
    for i, (name, lines) in enumerate(panels.items()):
        out += panel(i * WIDTH, name, lines, looks, x_ticks, y_label, is_log)
        out.append(text(i * WIDTH + LEFT + (WIDTH - LEFT - RIGHT) / 2, HEIGHT - 10, x_label, anchor="middle"))
    return "\n".join([*out, "</svg>", ""])
