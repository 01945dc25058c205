"""Results as JSON lines, one for each cell, written at once: a broken run can be taken up, and pages redrawn."""

import json

from runner.cells import TARGETS, Cell


class Store:
    """Records by the key of their cell; the last one written counts."""

    def __init__(self, path):
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self.records = {}
        for line in path.read_text().splitlines() if path.exists() else []:
            record = decode(json.loads(line))
            self.records[record["key"]] = record

    def add(self, key, record):
        """Keep and write."""
        record = {"key": key, **record}
        self.records[key] = record
        with self.path.open("a") as file:
            file.write(json.dumps(record) + "\n")

    def add_minutes(self, minutes):
        """Count the time of a run: one that was taken up again has several."""
        self.add("run", {"minutes": self.minutes() + minutes})

    def minutes(self):
        """What all runs took whose results are here."""
        return self.records.get("run", {}).get("minutes", 0.0)

    def cells(self):
        """Pairs of a cell and its record."""
        return [(Cell(**record["cell"]), record) for record in self.records.values() if "cell" in record]


def decode(record):
    """Accuracies are numbers again."""
    accuracies = {str(target): target for target in TARGETS}
    for part in ("ours", "peers", "own"):
        whole = record.get(part, {})
        if part == "ours":
            record[part] = {accuracies.get(key, key): value for key, value in whole.items()}
        else:
            record[part] = {
                name: {accuracies.get(key, key): value for key, value in found.items()} for name, found in whole.items()
            }
    return record


class Optima:
    """Certified optima: facts about the data, found once."""

    def __init__(self, path):
        self.path = path
        self.known = json.loads(path.read_text()) if path.exists() else {}

    def get(self, cell, find):
        """The optimum of a cell, found by the function if it is not known."""
        if cell.key not in self.known:
            self.known[cell.key] = find()
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(json.dumps(self.known, indent=0))
        return self.known[cell.key]
