#!/usr/bin/env python3
"""A range query equals its instants: random expressions, each point of query_range against query at that time.

TALLYD_ROUNDS is the number of expressions.
"""

import os
import time
import unittest

from harness import dice
from promcase import MINUTE_S, PromCase, difference
from promexprs import Expressions

ROUNDS = int(os.environ.get("TALLYD_ROUNDS") or 300)


class Steps(PromCase):
    def check(self, expression, start, step, count):
        """Is it answered?"""
        times = [start + i * step for i in range(count)]
        error, chart = self.ask(expression, start, times[-1], step)
        instants = [self.ask(expression, at) for at in times]
        errors = [text for text, _ in instants if text is not None]
        if error is not None:
            self.assertNotEqual([], errors, (expression, start, step, error))
            return False
        self.assertEqual([], errors, (expression, start, step))
        alone = {}
        for _, found in instants:
            for labels, values in found.items():
                alone.setdefault(labels, {}).update(values)
        text = difference(chart, alone)
        self.assertIsNone(text, (expression, start, step))
        return True

    def test_a_range_equals_its_instants(self):
        numbers = dice()
        end = int(time.time()) // MINUTE_S * MINUTE_S - 3600
        self.begin(numbers, end, has_judge=False)
        expressions = Expressions(numbers, end - 90 * MINUTE_S, end, has_ends=False)
        answered = 0
        for _ in range(ROUNDS):
            step = numbers.choice((15, 60, 90, 420))
            start = numbers.randrange(end - 90 * MINUTE_S, end - 60 * MINUTE_S)
            answered += self.check(expressions.draw()[0], start, step, numbers.randrange(2, 7))
        self.assertGreater(answered, ROUNDS // 2)


if __name__ == "__main__":
    unittest.main()
