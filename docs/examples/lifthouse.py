"""A client for a Lifthouse server: the standard library only.

    from lifthouse import Lifthouse
    house = Lifthouse("https://results.example.com", token)
    for item in house.results(field=["decision", "totals"]):
        print(item["name"], item["decision"])
    state = house.sync({})         # later again: state = house.sync(state)
    rows = house.table("results")  # a DataFrame if pandas is installed, else a list of dicts
"""

import json
import re
import time
import urllib.error
import urllib.parse
import urllib.request


class Problem(Exception):
    """An error of the server. errors lists each wrong parameter."""

    def __init__(self, status, body):
        super().__init__(f"{status} {body.get('code')}: {body.get('detail')} {body.get('errors', '')}")
        self.status, self.code, self.errors = status, body.get("code"), body.get("errors", [])


class Lifthouse:
    def __init__(self, address, token, attempts=5, sleep=time.sleep):
        self._address = address.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        self._attempts, self._sleep = attempts, sleep
        self._kept = {}  # the last body of each path, with its ETag

    def get(self, path, **parameters):
        """Return the JSON of a path and the headers. Unchanged bodies are not sent again."""
        given = {name: value for name, value in parameters.items() if value is not None}
        if given:
            path += "?" + urllib.parse.urlencode(given, doseq=True)
        headers = dict(self._headers)
        tag, body = self._kept.get(path, (None, None))
        if tag:
            headers["If-None-Match"] = tag
        for attempt in range(1, self._attempts + 1):
            try:
                request = urllib.request.Request(self._address + path, headers=headers)
                with urllib.request.urlopen(request) as response:
                    body = json.load(response)
                    self._kept[path] = response.headers.get("ETag"), body
                    return body, response.headers
            except urllib.error.HTTPError as error:
                with error:
                    if error.code == 304:
                        return body, error.headers
                    wait = error.headers.get("Retry-After")
                    if wait is None or attempt == self._attempts:
                        raise Problem(error.code, self._problem(error)) from None
            self._sleep(int(wait))

    @staticmethod
    def _problem(error):
        try:
            return json.load(error)
        except ValueError:
            return {"detail": error.reason}

    def _pages(self, path, **parameters):
        while path:
            page, headers = self.get(path, **parameters)
            yield page, headers
            link = re.match(r'<([^>]*)>; rel="next"', headers.get("Link") or "")
            path, parameters = link and link[1], {}

    def results(self, **parameters):
        """Yield the results of all campaigns and experiments, such as results(field=["decision"], websiteId=1)."""
        for page, _ in self._pages("/v1/results", **parameters):
            yield from page

    def sync(self, state, field=("report",), **parameters):
        """Return a new state {since, items}: the given one, merged with what has changed since."""
        items, since = dict(state.get("items", {})), None
        for page, headers in self._pages("/v1/results", field=list(field), since=state.get("since"), **parameters):
            since = since or headers["X-As-Of"]  # of the first page
            for item in page:
                kind, ids = ("campaign", ("campaignId",)) if "campaignId" in item else (
                    "experiment", ("widgetId", "experimentId"))
                key = "/".join([kind, *(str(item[name]) for name in ids)])
                if item.get("archived"):
                    items.pop(key, None)
                else:
                    items[key] = item
        return {"since": since, "items": items}

    def table(self, name, **parameters):
        """Return a table: a DataFrame if pandas is installed, else a list of dicts."""
        rows, _ = self.get(f"/v1/tables/{name}.json", **parameters)
        try:
            import pandas
        except ImportError:
            return rows
        return pandas.DataFrame(rows)
