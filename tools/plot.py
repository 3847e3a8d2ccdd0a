#!/usr/bin/env python3
"""Draws tokens per second over depth, or over the length of a prompt: what `sconce bench -o json` measured, beside
anchors.

usage: plot.py [--prompts] [-a anchors.json] -o out.svg results.json...

Results: files of `sconce bench -m model.pte -p 0 -d 0,512,2048,8000 -o json`; the decoding rows (`tg`) of all of them
make one line. With --prompts, of `-p 128,512,2048 -n 0`: the prompts (`pp`) at depth 0. Anchors: {"title": ...,
"anchors": [{"name": ..., "tokens_per_s": {depth or length: number}}]}. Depths are spread evenly, in their order: most
of the range would else be between the last two.
"""

import argparse
import html
import json
import math

WIDTH, HEIGHT = 760, 408
LEFT, RIGHT, TOP, BOTTOM = 76, 24, 56, 60
LINE = 13  # from one label to the next
OURS = "Sconce"
# Mid tones: at least 3:1 against white and against GitHub's dark background.
COLOURS = ["#d9730d", "#3b82c4", "#2f9e6e", "#a86cc1", "#c2557a", "#8a8a3a"]
GREY = "#808080"


def measured(files, prompts):
    """Depth or length -> tokens per second of the rows; of one that comes twice the last one counts."""
    points = {}
    for name in files:
        with open(name, encoding="utf-8") as file:
            for row in json.load(file)["results"]:
                if prompts and row["test"] == "pp" and row["depth"] == 0:
                    points[int(row["tokens"])] = float(row["tokens_per_s"])
                elif not prompts and row["test"] == "tg":
                    points[int(row["depth"])] = float(row["tokens_per_s"])
    if not points:
        kind = 'prompts at depth 0 ("test": "pp")' if prompts else 'decoding results ("test": "tg")'
        raise SystemExit(f"plot.py: no {kind} in " + ", ".join(files))
    return points


def read_anchors(name):
    if not name:
        return "Decoding", []
    with open(name, encoding="utf-8") as file:
        whole = json.load(file)
    lines = [(a["name"], {int(d): float(v) for d, v in a["tokens_per_s"].items()}) for a in whole["anchors"]]
    return whole.get("title", "Decoding"), lines


def step_of(most):
    """A round step that makes four to eight grid lines."""
    power = 10 ** math.floor(math.log10(most / 4))
    return next(f * power for f in (1, 2, 2.5, 5, 10) if most / (f * power) <= 8)


def number(value):
    return f"{value:,.0f}" if value >= 10 else f"{value:g}"


class Chart:
    def __init__(self, lines, axis):
        self.axis = axis
        self.depths = sorted({depth for _, points in lines for depth in points})
        most = max(value for _, points in lines for value in points.values())
        self.step = step_of(most)
        self.most = math.ceil(most * 1.02 / self.step) * self.step

    def x(self, depth):
        room = WIDTH - LEFT - RIGHT - 80  # half a step of air on either side
        return LEFT + 40 + room * self.depths.index(depth) / max(1, len(self.depths) - 1)

    def y(self, value):
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * value / self.most

    def grid(self):
        value = 0
        while value <= self.most + 1e-9:
            y = self.y(value)
            yield f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>'
            yield f'<text class="tick" x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{number(value)}</text>'
            value += self.step
        for depth in self.depths:
            x = self.x(depth)
            yield f'<text class="tick" x="{x:.1f}" y="{HEIGHT - BOTTOM + 26}" text-anchor="middle">{depth:,}</text>'
        yield (f'<text class="axis" x="{(LEFT + WIDTH - RIGHT) / 2:.1f}" y="{HEIGHT - 12}" text-anchor="middle">'
               f"{self.axis}</text>")
        yield (f'<text class="axis" transform="translate(16 {(TOP + HEIGHT - BOTTOM) / 2:.1f}) rotate(-90)" '
               'text-anchor="middle">tokens/s, one sequence</text>')

    def places(self, y, heights, side):
        """Where the value of a point at this height may stand: (baseline, cost, side). Above or below it, beside it at
        the chart's ends, or further off; on no point."""
        yield from ((y + 4, 2, side),) if side else ()
        for other in heights:
            for k in range(len(heights)):
                for at in (other - 8 - LINE * k, other + 15 + LINE * k):
                    clear = all(h + 3.5 < at - 9 or at + 1 < h - 3.5 for h in heights)
                    if clear and 50 <= at <= HEIGHT - BOTTOM + 12:
                        own = other == y and k == 0
                        yield at, (at > y) if own else 6 + abs(at - 4 - y), 0

    def labels_at(self, depth, lines):
        """The places of one depth's values that are best together: in their order, none on another."""
        points = sorted((self.y(p[depth]), name) for name, p in lines if depth in p)
        heights, side = [y for y, _ in points], (depth == self.depths[-1]) - (depth == self.depths[0])
        best = {-math.inf: (0, [])}  # where the last one stands -> (cost, all of them)
        for y in heights:
            longer = {}
            for at, cost, beside in self.places(y, heights, side):
                for last, (before, taken) in best.items():
                    if last + LINE <= at:
                        longer[at] = min(longer.get(at, (math.inf, [])), (before + cost, [*taken, (at, beside)]))
            best = longer
        return {name: place for (_, name), place in zip(points, min(best.values())[1])}

    def line(self, name, points, colour, labels):
        ours = name == OURS
        at = [(self.x(d), self.y(points[d])) for d in sorted(points)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
        yield f'<polyline fill="none" stroke="{colour}" stroke-width="{3 if ours else 2}" points="{path}"/>'
        for depth, (x, y) in zip(sorted(points), at):
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{4.5 if ours else 3.5}" fill="{colour}"/>'
            height, side = labels[depth][name]
            yield (f'<text x="{x + 8 * side:.1f}" y="{height:.1f}" fill="{colour}" text-anchor="{("middle", "start", "end")[side]}"'
                   f'{" font-weight=" + chr(34) + "bold" + chr(34) if ours else ""}>{number(points[depth])}</text>')


def legend(lines, colours):
    """One row: letters of 12 px, about 7 px wide in the widest usual fonts, and smaller where it would pass the edge."""
    room = WIDTH - LEFT - RIGHT - 34 * len(lines)
    size = min(12, 12 / 7 * room / sum(len(name) for name, _ in lines))
    x = LEFT
    for name, _ in lines:
        yield f'<rect x="{x:.0f}" y="34" width="14" height="4" fill="{colours[name]}"/>'
        yield f'<text x="{x + 20:.0f}" y="40" font-size="{size:.1f}" fill="{colours[name]}">{html.escape(name)}</text>'
        x += 34 + 7 / 12 * size * len(name)


def draw(title, lines, axis="tokens in the context before"):
    """The whole file. lines: (name, {depth: tokens per second}), ours first."""
    chart = Chart(lines, axis)
    colours = {name: COLOURS[i % len(COLOURS)] for i, (name, _) in enumerate(lines)}
    labels = {depth: chart.labels_at(depth, lines) for depth in chart.depths}
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-size="12" '
             'font-family="Helvetica, Arial, sans-serif" role="img">',
             f"<title>{html.escape(title)}</title>",
             f"<style>.grid{{stroke:{GREY};stroke-opacity:.3}}.tick,.axis,.title{{fill:{GREY}}}"
             ".title{font-size:14px;font-weight:bold}</style>",
             f'<text class="title" x="{LEFT}" y="20">{html.escape(title)}</text>',
             *legend(lines, colours), *chart.grid()]
    for name, points in reversed(lines):  # ours on top
        parts += chart.line(name, points, colours[name], labels)
    return "\n".join(parts) + "\n</svg>\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-a", "--anchors")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--prompts", action="store_true")
    parser.add_argument("results", nargs="+")
    options = parser.parse_args()
    title, anchors = read_anchors(options.anchors)
    lines = [(OURS, measured(options.results, options.prompts)), *anchors]
    text = draw(title, lines, "tokens of the prompt") if options.prompts else draw(title, lines)
    with open(options.output, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
