"""Random expressions of PromQL over the metrics of promcase.py: each as it is asked here, and as it is asked of the judge.

The judge's text differs in what docs/PROMETHEUS.md says of counters: one alone is the last minute, its ranges are anchored,
and it is there where its window has events, or where it is named by all its labels. Left out is @ within a subquery, of which
Prometheus 3.16 loses some samples.
"""

import re

from promcase import HISTOGRAMS, INSTANCES, REPORTS, TOTALS

GAUGES = [f"{report}:{measure}" for report, (_, measures) in REPORTS.items() for measure in measures
          if f"{report}:{measure}" not in (*TOTALS, *HISTOGRAMS)]
REPORT_NAMES = tuple(f"{report}:" for report in REPORTS)
VALUES = {"instance": INSTANCES, "job": ["demo"], "type": ["buffers", "cached", "free", "used"],
          "mode": ["idle", "system", "user"], "le": ["0.1", "1", "+Inf"]}
RANGES = ("1m", "2m", "5m", "10m", "30m", "1h")
OF_GAUGES = ("sum", "avg", "min", "max", "count", "last", "stddev", "stdvar", "present")
OF_TOTALS = ("sum", "avg", "min", "max", "count", "last", "stddev", "stdvar", "present")
AGGREGATES = ("sum", "avg", "min", "max", "count", "stddev", "stdvar", "group")
MATHS = ("abs", "ceil", "floor", "exp", "sqrt", "ln", "log2", "log10", "sgn", "atan", "tanh", "deg", "rad", "round", "sort", "-", "+")
TIMES = ("hour", "minute", "day_of_week", "day_of_month", "day_of_year", "days_in_month", "month", "year")
ARITHMETIC = ("+", "-", "*", "/", "atan2")  # % and ^ make much of the last digit
COMPARISONS = ("==", "!=", "<", ">", "<=", ">=")
DEPTH = 3


def labels_of(metric):
    return REPORTS[metric.partition(":")[0]][0]


def both(form, *parts):
    """The same form around the two texts of each part."""
    return tuple(form.format(*(part[i] for part in parts)) for i in (0, 1))


class Expressions:
    def __init__(self, dice, start_s, end_s, has_ends=True):
        """`has_ends`: with @ start() and @ end(), by which an instant differs from a range."""
        self.dice, self.start_s, self.end_s, self.has_ends = dice, start_s, end_s, has_ends
        self.inside = 0  # subqueries around

    def draw(self):
        """(text, text for the judge)"""
        return self.scalar(DEPTH) if self.dice.random() < 0.05 else self.vector(DEPTH)

    # ---- selectors

    def matchers(self, metric):
        """(text with braces, is each label given by `=`?)"""
        dice, texts, names = self.dice, [], labels_of(metric)
        if dice.random() < 0.15:
            return "{" + ",".join(f'{name}="{dice.choice(VALUES[name])}"' for name in names) + "}", True
        for name in names:
            value = dice.choice(VALUES[name])
            texts += dice.choice(([], [], [f'{name}="{value}"'], [f'{name}!="{value}"'], [f'{name}=~"[{value[0]}]{value[1:4]}.*|x"'],
                                  [f'{name}!~".*{value[-1:]}"']))
        return "{" + ",".join(texts) + "}", not names or all(f'{name}="' in ",".join(texts) for name in names)

    def modifiers(self):
        dice, texts = self.dice, []
        if dice.random() < 0.2:
            texts.append("offset " + dice.choice(("1m", "5m", "10m", "-1m", "90s", "30s", "7s")))
        if dice.random() < 0.1 and not self.inside:
            at = str(dice.randrange(self.start_s, self.end_s))
            texts.append("@ " + dice.choice((at, "start()", "end()") if self.has_ends else (at,)))
        return "".join(f" {text}" for text in dice.sample(texts, len(texts)))

    def selector(self):
        metric = self.dice.choice((*GAUGES, *TOTALS))
        (matchers, is_named), modifiers = self.matchers(metric), self.modifiers()
        text = f"{metric}{matchers}{modifiers}"
        if metric not in TOTALS:
            return text, text
        if is_named:
            return text, f'label_replace(last_over_time({metric}:zero{matchers}[1m]{modifiers}), "__name__", "{metric}", "", "")'
        return text, f"last_over_time({metric}{matchers}[1m]{modifiers})"

    def over_total(self, metric, text, matchers, modifiers, is_named):
        dice, length = self.dice, self.dice.choice(RANGES)
        if dice.random() < 0.5:
            function = dice.choice(("rate", "increase"))
            judged = f"{function}({metric}:total{matchers}[{length}] anchored{modifiers})"
            return f"{function}({metric}{matchers}[{length}]{modifiers})", judged if is_named else f"({judged} > 0)"
        function, quantile = dice.choice(OF_TOTALS) + "_over_time", ""
        if dice.random() < 0.1:
            function, quantile = "quantile_over_time", f"{dice.choice((0, 0.3, 0.5, 1, 2))}, "
        judged = f"{function}({quantile}{metric}:zero{matchers}[{length}]{modifiers})"
        if not is_named:
            judged = f"({judged} and ignoring () present_over_time({metric}{matchers}[{length}]{modifiers}))"
        if function == "last_over_time":
            judged = f'label_replace({judged}, "__name__", "{metric}", "", "")'
        return f"{function}({quantile}{metric}{matchers}[{length}]{modifiers})", judged

    def over_range(self):
        dice, metric = self.dice, self.dice.choice((*GAUGES, *TOTALS))
        (matchers, is_named), modifiers = self.matchers(metric), self.modifiers()
        if metric in TOTALS:
            return self.over_total(metric, metric, matchers, modifiers, is_named)
        ranged = f"{metric}{matchers}[{dice.choice((*RANGES, '90s', '150s'))}]{modifiers}"
        return (self.over(ranged),) * 2

    def over(self, ranged, is_exact=True):
        """`is_exact`: the values are not worked out, so they do not differ in their last digits."""
        dice = self.dice
        form = dice.choice((*(f"{name}_over_time({{}})" for name in OF_GAUGES), "quantile_over_time(0.4, {})", "changes({})",
                            "resets({})", "idelta({})", "deriv({})", "predict_linear({}, 600)", "absent_over_time({})"))
        if ("predict" in form and "@" in ranged) or (form.startswith(("changes", "resets")) and not is_exact):
            form = "max_over_time({})"
        return form.format(ranged)

    def subquery(self, depth):
        dice = self.dice
        self.inside += 1
        inner = self.selector() if dice.random() < 0.2 else self.vector(depth - 1)
        self.inside -= 1
        form = self.over("({})" + f"[{dice.choice(('2m', '5m', '10m', '15m'))}:{dice.choice(('', '1m', '30s', '45s', '2m'))}]"
                         + self.modifiers(), is_exact=inner[0].startswith(REPORT_NAMES))
        return both(form, inner)

    # ---- histograms

    def histogram_selector(self):
        metric = self.dice.choice(HISTOGRAMS)
        (matchers, is_named), modifiers, length = self.matchers(metric), self.modifiers(), self.dice.choice(RANGES)
        ranged, zeros = f"{metric}{matchers}[{length}]{modifiers}", f"{metric}:zero{matchers}[{length}]{modifiers}"
        form = self.dice.choice(("{}", "increase({})", "rate({})", "sum_over_time({})", "avg_over_time({})", "last_over_time({})"))
        has_name = form in ("{}", "last_over_time({})")
        if form == "{}":
            zeros = f"{metric}:zero{matchers}[1m]{modifiers}"
            judged, ranged = f"last_over_time({zeros})", f"{metric}{matchers}{modifiers}"
        elif form == "rate({})":
            judged = f"sum_over_time({zeros}) / {int(length[:-1]) * (60 if length.endswith('m') else 3600)}"
        else:
            judged = form.replace("increase", "sum_over_time").format(zeros)
        if not is_named:
            judged = f"({judged} and ignoring () present_over_time({zeros.replace(':zero', '')}))"
        if has_name:
            judged = f'label_replace({judged}, "__name__", "{metric}", "", "")'
        return form.format(ranged), judged

    def histogram(self, depth):
        """An expression whose values are histograms."""
        dice, choice = self.dice, self.dice.random()
        if depth == 0 or choice < 0.4:
            return self.histogram_selector()
        inner = self.histogram(depth - 1)
        if choice < 0.65:
            return both(f"{dice.choice(('sum', 'avg'))} {self.grouping()}({{}})", inner)
        if choice < 0.8:
            return both(dice.choice(("({}) * 2.5", "3 * ({})", "({}) / 4", "-({})", '({}) * scalar(sum(cpus:v))',
                                     'label_replace({}, "job", "", "mode", "u.*")', "({}) / on (instance) group_left () cpus:v",
                                     "last_over_time(({})[5m:1m])")), inner)
        return both(f"({{}}) {dice.choice(('+', '+', '-', 'and', 'or', 'unless'))} ({{}})", inner, self.histogram(depth - 1))

    def of_histogram(self, depth):
        """A number, or histograms as they are."""
        dice, inner = self.dice, self.histogram(depth)
        if dice.random() < 0.2:
            return inner
        bounds = dice.choice(("0, 1", "-1, 0.3", "-Inf, 2", "0.5, +Inf", "3, 1", "0.111, 0.112", "-Inf, +Inf", "NaN, 1", "-4, -0.5"))
        form = dice.choice((*(f"histogram_{name}({{}})" for name in ("count", "sum", "avg", "stddev", "stdvar")),
                                 f"histogram_fraction({bounds}, {{}})", f"histogram_fraction({bounds}, {{}})",
                                 *(f"histogram_quantile({q}, {{}})" for q in (0, 0.0123, 0.1234, 0.4137, 0.9113, 1, 2, "NaN", -1)),
                                 "count by (mode) ({})", "group ({})", "absent(({}) * 1)", "sum(histogram_count({}))",
                                 "max by (job) (histogram_sum({}))", "timestamp(({}) * 1)", "max_over_time((histogram_sum({}))[10m:2m])",
                                 "count_over_time(({})[4m:1m])", "present_over_time(({})[4m:1m])"))
        if form.startswith("histogram_quantile") and "-" in re.sub(r"offset -|-Inf", "", inner[0]):
            form = "histogram_count({})"  # a rank among counts below 0 means nothing
        if form.startswith(("histogram_quantile", "histogram_fraction")) and "calm" in inner[0]:
            form = "histogram_stddev({})"  # Prometheus' zero bucket depends on what other samples of its chunk have
        return both(form, inner)

    # ---- vectors

    def grouping(self):
        names = self.dice.sample(("instance", "job", "type", "mode", "nothing", "__name__"), self.dice.randrange(3))
        return self.dice.choice(("", f"by ({', '.join(names)}) ", f"without ({', '.join(name for name in names if name != '__name__')}) "))

    def aggregate(self, depth):
        dice, choice = self.dice, self.dice.random()
        if choice < 0.15:  # of values that are never equal
            metric = dice.choice(("mem:v", "mem:low", "mem:mid"))
            inner = (f"{metric}{self.matchers(metric)[0]}",) * 2
            return both(f"{dice.choice(('topk', 'bottomk'))} {self.grouping()}({dice.randrange(5)}, {{}})", inner)
        inner = self.vector(depth - 1)
        if choice < 0.25:
            return both(f"quantile {self.grouping()}({dice.choice((-1, 0, 0.25, 0.5, 0.9, 1, 2))}, {{}})", inner)
        if choice < 0.3:
            return both(f'count_values {self.grouping()}("value", {{}})', inner)
        return both(f"{dice.choice(AGGREGATES)} {self.grouping()}({{}})", inner)

    def operation(self, depth):
        dice = self.dice
        operator = dice.choice(ARITHMETIC if dice.random() < 0.5 else COMPARISONS)
        if operator in COMPARISONS and dice.random() < 0.5:
            operator += " bool"
        kind = dice.randrange(5)
        if kind == 0:
            return both(f"({{}}) {operator} ({{}})", self.vector(depth - 1), self.scalar(depth - 1))
        if kind == 1:
            return both(f"({{}}) {operator} ({{}})", self.scalar(depth - 1), self.vector(depth - 1))
        matching = dice.choice(("", "", "on (instance) ", "on (instance, job) ", "ignoring (type) ", "ignoring (mode, le) ",
                                "on (__name__, instance) ", "ignoring (__name__) "))
        left, right = self.vector(depth - 1), self.vector(depth - 1)
        if kind == 2:
            return both(f"({{}}) {dice.choice(('and', 'or', 'unless'))} {matching}({{}})", left, right)
        if kind == 3:
            names = dice.choice(("instance", "instance, job"))
            many = dice.choice(("group_left ()", "group_left (nothing)", "group_left (type)"))
            return both(f"({{}}) {operator} on ({names}) {many} (max by (instance, job) ({{}}))", left, right)
        if dice.random() < 0.4:
            names = dice.choice(("instance", "instance, job"))
            return both(f"(sum by (instance, job) ({{}})) {operator} on ({names}) group_right () ({{}})", left, right)
        return both(f"({{}}) {operator} {matching}({{}})", left, right)

    def quantile(self, depth):
        """An expression on api:s, whose `le` makes buckets, though not always ones that grow; or on a metric without `le`."""
        dice, inner = self.dice, self.vector(depth - 1)
        if dice.random() < 0.8:
            (matchers, is_named) = self.matchers("api:s") if dice.random() < 0.3 else ("", False)
            inner = self.over_total("api:s", "api:s", matchers, "", is_named)
            inner = both(dice.choice(("{}", "sum by (le) ({})", "max by (le, instance) ({})", "sum without (job) ({})")), inner)
        if dice.random() < 0.5:
            limits = [dice.choice(("-Inf", -1, 0, 0.05, 0.1, 0.3, 1, 1.5, "+Inf", "NaN")) for _ in range(2)]
            return both(f"histogram_fraction({limits[0]}, {limits[1]}, {{}})", inner)
        return both(f"histogram_quantile({dice.choice((-1, 0, 0.1, 0.5, 0.9, 1, 2, 'NaN'))}, {{}})", inner)

    def call(self, depth):
        dice, inner = self.dice, self.vector(depth - 1)
        # Of a number that is no time, as NaN, Prometheus makes up the parts; the filter drops NaN.
        form = dice.choice((*(f"{name}({{}})" for name in MATHS), "absent(({}) + 0)", "({}) ^ 2", "round(clamp({}, -1e6, 1e6)) % 7", "2 ^ clamp({}, -9, 9)",
                            *(f"{name}(clamp(({{}}) >= -Inf, -1e9, 1e9))" for name in TIMES), "round({}, 0.25)", "clamp({}, 1, 1e7)",
                            "clamp_min({}, 3)", "clamp_max({}, 5e8)", "timestamp(({}) + 0)",
                            'label_replace({}, "kind", "$1-${{n}}$$", "instance", "(.*):(?P<n>\\\\d+)")',
                            'label_replace({}, "job", "", "type", "f.*")', 'label_join({}, "both", "/", "job", "instance")'))
        return both(form, inner)

    def vector(self, depth):
        dice = self.dice
        if depth == 0 or dice.random() < 0.1:
            return self.selector() if dice.random() < 0.4 else self.over_range()
        choice = dice.random()
        if choice < 0.3:
            return self.aggregate(depth)
        if choice < 0.6:
            return self.operation(depth)
        if choice < 0.8:
            return self.call(depth)
        if choice < 0.9:
            return self.subquery(depth)
        if choice < 0.93:
            metric = dice.choice(GAUGES)
            selector = f"{metric}{self.matchers(metric)[0]}"
            return (dice.choice((f"timestamp({selector})", f"absent({selector})")),) * 2
        if choice < 0.96:
            return self.quantile(depth)
        if choice < 0.97:
            return both("vector({})", self.scalar(depth - 1))
        return self.selector()

    def scalar(self, depth):
        dice, choice = self.dice, self.dice.random()
        if depth > 0 and choice < 0.2:
            return both("scalar({})", self.vector(depth - 1))
        if depth > 0 and choice < 0.4:
            return both(f"({{}}) {dice.choice(ARITHMETIC)} ({{}})", self.scalar(depth - 1), self.scalar(depth - 1))
        return (dice.choice(("time()", "1", "2.5", "-3", "1e3", "0", "pi()", "100")),) * 2
