#!/usr/bin/env python3
"""Joins results of `moejit bench --json` and of peers.py into one markdown table: time and speed of each, and how many times
faster moejit is than the best peer that computes the same.

  join.py moejit.json peers.json [more.json …] > speed.md

Several files of one program are runs: medians over all their times are taken. A lighter product (a scale a row where the
kernel has blocks), or one with another accumulation, is shown and not counted as the best."""

import json
import statistics
import sys

UNEQUAL = ("lighter product", "quantizes bf16 rows inside")


def is_equal(line):
    return line["peer"] != "torch fast" and not any(word in line["label"] for word in UNEQUAL)


def read(paths):
    """(kernel, rows an expert, routing) → peer → line, and what is known of the machine."""
    cases, headers = {}, []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        if found.get("format") != 1:
            sys.exit(f"{path}: format {found.get('format')}, expected 1")
        headers.append(found)
        for line in found["lines"]:
            # A plan beside the chosen one is a contender of its own.
            name = line["peer"]
            if name == "moejit" and line["label"] != "chosen":
                name = f"moejit, {line['label']}"
            case = cases.setdefault((line["kernel"], line["rowsPerExpert"] or line["rows"], line["routing"]), {})
            if name in case:
                case[name]["allUs"] += line["allUs"]
                checks = [case[name]["check"], line["check"]]
                case[name]["check"] = next((c for c in checks if c and not c["ok"]), checks[0])
            else:
                case[name] = dict(line)
    for case in cases.values():
        for line in case.values():
            line["us"] = statistics.median(line["allUs"])
            line["teraflops"] = line["operations"] / line["us"] / 1e6
    return cases, headers


def table(cases):
    peers = sorted({name for case in cases.values() for name in case} - {"moejit"})
    out = ["| kernel | rows an expert | routing | moejit µs | TFLOP/s | % of read | "
           + " | ".join(f"{peer} µs" for peer in peers) + " | × the best equal peer | |",
           "|" + " --- |" * (8 + len(peers))]
    for (kernel, rows, routing), case in sorted(cases.items()):
        ours = case.get("moejit")
        equal = [line["us"] for name, line in case.items() if not name.startswith("moejit") and is_equal(line)]
        gain = f"{min(equal) / ours['us']:.2f}" if equal and ours else "–"
        wrong = [name for name, line in case.items() if line["check"] and not line["check"]["ok"]]
        cells = [kernel, str(rows), routing]
        cells += [f"{ours['us']:.1f}", f"{ours['teraflops']:.0f}", f"{100 * ours['readUs'] / ours['us']:.0f}"] if ours \
            else ["–"] * 3
        cells += [f"{case[peer]['us']:.1f}" + ("" if is_equal(case[peer]) else "*") if peer in case else "–"
                  for peer in peers]
        out.append("| " + " | ".join([*cells, gain, "**wrong: " + ", ".join(wrong) + "**" if wrong else "ok"]) + " |")
    return "\n".join(out)


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        return 0 if len(sys.argv) > 1 else 2
    cases, headers = read(sys.argv[1:])
    machines = sorted({header["device"]["name"] for header in headers})
    ceilings = ", ".join(f"{header['ceilings']['teraflops']:.0f} TFLOP/s ({header['ceilings']['teraflopsFrom']})"
                         for header in headers if header["ceilings"]["teraflops"])
    print(f"{', '.join(machines)}; dense: {ceilings or 'not measured'}. * does not compute the same, and is not counted.\n")
    print(table(cases))
    return 1 if len(machines) > 1 else 0


if __name__ == "__main__":
    sys.exit(main())
