"""Tests of lifthouse.py against the server at LIFTHOUSE_URL: python3 -m unittest"""

import os
import unittest

from lifthouse import Lifthouse, Problem


class TestLifthouse(unittest.TestCase):
    def setUp(self):
        self.waits = []
        self.house = Lifthouse(os.environ["LIFTHOUSE_URL"], os.environ["LIFTHOUSE_TOKEN"], sleep=self.waits.append)

    def test_results_in_pages(self):
        items = list(self.house.results(field=["decision", "totals"], limit=1))
        names = [item["name"] for item in items]
        self.assertEqual(names, ["Checkout layout", "Free delivery"])
        self.assertEqual([item["totals"]["visitors"] for item in items], [4, 2])

    def test_sync(self):
        full = self.house.sync({}, field=["totals"])
        self.assertEqual(sorted(full["items"]), ["campaign/12", "campaign/13"])
        again = self.house.sync(full, field=["totals"])
        self.assertEqual(sorted(again["items"]), sorted(full["items"]))
        self.assertGreaterEqual(again["since"], full["since"])

    def test_table(self):
        rows = self.house.table("experiments")
        names = [row["name"] for row in rows] if isinstance(rows, list) else list(rows["name"])
        self.assertEqual(names, ["Checkout layout", "Free delivery"])

    def test_unchanged_is_not_sent_again(self):
        first, _ = self.house.get("/v1/tables/looks.json")
        second, _ = self.house.get("/v1/tables/looks.json")
        self.assertIs(first, second)

    def test_all_errors_together(self):
        with self.assertRaises(Problem) as raised:
            self.house.table("result", websiteId="x")
        self.assertEqual(raised.exception.status, 400)
        self.assertEqual(sorted(error["name"] for error in raised.exception.errors), ["table", "websiteId"])


if __name__ == "__main__":
    unittest.main()
