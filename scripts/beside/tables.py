"""The tables, in Markdown."""

import statistics
from collections import defaultdict

NODE_DATA = ("feature", "activation", "activation_gradient")
# Without what is said once at the start, and the validation scores that RETEXO's workers sum: neither is counted by the authors.
COUNTED = (*NODE_DATA, "sample", "parameter_gradient")


def table(header, rows):
    if not rows:
        return ""
    lines = ["| " + " | ".join(header) + " |", "| " + " | ".join(["---"] + ["---:"] * (len(header) - 1)) + " |"]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows]) + "\n"


def by_layer(result):
    """Bytes of each epoch, by kind and layer; what has no layer stands at 0."""
    found = defaultdict(dict)
    for epoch, kind, layer, _, count in result["sent"]:
        if kind in COUNTED and epoch >= 0:
            cell = found[kind, layer or 0]
            cell[epoch] = cell.get(epoch, 0) + count
    return found


def an_epoch(epochs):
    """Bytes of an epoch that has any: one number, or the first and the last."""
    values = [epochs[epoch] for epoch in sorted(epochs)]
    if not values:
        return "none"
    if len(values) == 1:
        return f"{values[0]:,} once"
    return f"{values[0]:,}" if len(set(values)) == 1 else f"{values[0]:,} … {values[-1]:,}"


def bytes_rows(title, theirs, ours):
    mine, yours = by_layer(ours), by_layer(theirs)
    for kind, layer in sorted(set(mine) | set(yours), key=lambda what: (COUNTED.index(what[0]), what[1])):
        left, right = (an_epoch(side.get((kind, layer), {})) for side in (yours, mine))
        name = kind.replace("_", " ")
        place = f"{name}, layer {layer}" if kind in NODE_DATA else name
        same = "same" if yours.get((kind, layer)) == mine.get((kind, layer)) else difference(yours[kind, layer], mine[kind, layer])
        yield [title, place, left, right, same]


def difference(theirs, ours):
    a, b = sum(theirs.values()), sum(ours.values())
    return f"{b - a:+,} in all" if a != b else "other epochs"


def total_row(title, theirs, ours, own_counter):
    if own_counter:
        a, b = theirs["own_counter"], ours["own_counter"]
        what = "their counter, both ends"
    else:
        a, b = (sum(count for _, kind, _, _, count in side["sent"] if kind in NODE_DATA) for side in (theirs, ours))
        what = "node data"
    return [title, what, f"{a:,}", f"{b:,}", "same" if a == b else f"{b - a:+,} ({b / a - 1:+.1%})"]


def apart(one, other):
    """The relative difference of each epoch."""
    return [abs(x - y) / abs(x) for x, y in zip(one["loss"], other["loss"])]


def loss_row(title, theirs, ours, moved):
    """`moved` is ours from weights that differ by a rounding: so much is nobody's doing."""
    a, b = theirs["loss"], ours["loss"]
    if len(a) != len(b):
        return [title, len(a), "", "", f"{len(b)} of ours", "", ""]
    found = apart(theirs, ours)
    first = next((epoch for epoch, value in enumerate(found) if value > 1e-3), None)
    after = "never" if first is None else f"epoch {first}"
    alone = f"{max(apart(ours, moved)):.1e}"
    return [title, len(a), f"{a[0]:.6f} → {a[-1]:.6f}", f"{b[0]:.6f} → {b[-1]:.6f}", f"{max(found):.1e}", after, alone]


def epochs(code, title, theirs, ours):
    """The loss of each epoch, theirs and ours."""
    for epoch, (their, our) in enumerate(zip(theirs["loss"], ours["loss"])):
        yield [code, title, epoch, f"{their:.7g}", f"{our:.7g}"]


def by_epoch(rows):
    """The same as a table: a line for each epoch, a column for each case."""
    cases = list(dict.fromkeys(case for _, case, *_ in rows))
    found = {(case, epoch): f"{theirs}, {ours}" for _, case, epoch, theirs, ours in rows}
    lines = [[epoch, *(found.get((case, epoch), "") for case in cases)] for epoch in sorted({row[2] for row in rows})]
    return table(["epoch", *cases], lines)


def of_best(result):
    """Test accuracy of the model with the best validation accuracy, as the authors choose it."""
    return result["accuracy"][-1]


def varco_best(result):
    """The last of the best in validation, as their `val_acc >= best_val_acc` has it."""
    pairs = list(zip(result["accuracy"][::2], result["accuracy"][1::2]))
    best = max(value for value, _ in pairs)
    return [test for value, test in pairs if value == best][-1]


def spread(values):
    mean = f"{100 * statistics.mean(values):.1f}"
    return f"{mean} ± {100 * statistics.stdev(values):.1f}" if len(values) > 1 else mean


def accuracy_row(title, theirs, ours):
    apart = [b - a for a, b in zip(theirs, ours)]
    return [title, len(theirs), spread(theirs), spread(ours), f"{100 * statistics.mean(apart):+.1f}"]


def side_by_side(name, shown):
    """All tables of one program: `shown` has a list of rows for each kind."""
    parts = [f"## {name}\n"]
    if shown["bytes"]:
        parts.append("Bytes of an epoch, all workers:\n\n" + table(["", "what", "theirs", "ours", ""], shown["bytes"]))
    if shown["total"]:
        parts.append("Bytes of the whole training:\n\n" + table(["", "what", "theirs", "ours", ""], shown["total"]))
    if shown["losses"]:
        header = ["training loss", "epochs", "theirs, first → last", "ours", "largest relative difference", "above 0.001 from", "of ours, weights moved by a rounding"]
        parts.append(table(header, shown["losses"]))
        parts.append("Training loss of each epoch, theirs and ours:\n\n" + by_epoch(shown["epochs"]))
    if shown["accuracy"]:
        parts.append(table(["test accuracy, %", "seeds", "theirs", "ours", "difference, paired"], shown["accuracy"]))
    parts += [f"- {note}\n" for note in shown["notes"]]
    return "\n".join(parts)
