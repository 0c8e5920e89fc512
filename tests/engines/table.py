"""Markdown tables of what the programs of this folder printed: a table for each engine, release and kernel, a row for each
case, a column for each dispatch. usage: table.py FILE.jsonl …"""
import json
import sys


def cell(entry):
    if entry is None:
        return "–"
    if entry["outcome"] == "ok":
        if "error_scheme" not in entry:
            return entry.get("message") or "takes it"
        if not entry.get("finite", True):
            return "**not finite**"
        return f"{entry['error_scheme']:.1e}"
    if entry["outcome"] == "refused":
        return "no" if entry.get("scheme") is False else "not here"
    if entry["outcome"] == "raises":
        text = entry.get("message", "").replace("|", "/")
        return f"{entry.get('exception', '')} {text[:90]}".strip()
    return entry["outcome"]


def main():
    tables = {}
    for path in sys.argv[1:]:
        for line in open(path):
            entry = json.loads(line)
            name = f"{entry['engine']} {entry['version']}"
            if "hub_kernel" in entry:
                name += f", hub kernel: {entry['hub_kernel']}, {entry.get('device', '')}"
            tables.setdefault(name, []).append(entry)
    for name, entries in tables.items():
        dispatches = list(dict.fromkeys(entry["dispatch"] for entry in entries))
        cases = list(dict.fromkeys(entry["case"] for entry in entries))
        found = {(entry["case"], entry["dispatch"]): entry for entry in entries}
        print(f"### {name}\n\n| case | {' | '.join(dispatches)} |\n|---|{'---|' * len(dispatches)}")
        for case in cases:
            print(f"| {case} | {' | '.join(cell(found.get((case, dispatch))) for dispatch in dispatches)} |")
        print()


if __name__ == "__main__":
    main()
