"""How a model shows itself in a notebook."""

import html
from typing import Any, Dict, List


def _size(n: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if n < 1024:
            return f"{n:.0f} {unit}" if unit == "B" else f"{n:.1f} {unit}"
        n /= 1024
    return f"{n:.1f} GiB"


def _tensor(value: Dict[str, Any]) -> str:
    if value["kind"] != "Tensor":
        return value["kind"].lower()
    return f"{value['dtype']} {'up to ' if value['dynamic'] == 'bound' else ''}{value['dims']}"


def _tensors(method: Dict[str, Any], which: str) -> str:
    return "<br>".join(html.escape(_tensor(method["values"][i])) for i in method[which]) or "—"


def _verdict(method: Dict[str, Any]) -> str:
    if method["runs"]:
        memory = method["gpu_memory"] or {}
        return "yes, " + _size(memory["persistent"] + memory["transient"]) if memory else "yes"
    lines = [f"<b>no</b>: {html.escape(method['reason'] or 'unknown')}"]
    for op in method["operators"]:
        if op["runs"] is None:
            advice = f" — {html.escape(op['advice'])}" if op["advice"] else ""
            lines.append(f"{op['count']} × <code>{html.escape(op['name'])}</code>{advice}")
    return "<br>".join(lines)


def _row(cells: List[str], tag: str = "td") -> str:
    """Only the last cell has sentences, which may be broken."""
    style = "text-align:left;vertical-align:top"
    styles = [style + ";white-space:nowrap"] * (len(cells) - 1) + [style]
    return "<tr>" + "".join(f'<{tag} style="{s}">{c}</{tag}>' for s, c in zip(styles, cells)) + "</tr>"


def model(title: str, report: Dict[str, Any], device: Any) -> str:
    """A table: methods with their inputs and outputs, and whether they run or which operators stand in the way."""
    methods = [m for m in report["methods"] if not m["constant"]]
    constants = [m["name"] for m in report["methods"] if m["constant"]]
    rows = [_row(["method", "inputs", "outputs", "runs"], "th")]
    for m in methods:
        name = f"<code>{html.escape(m['name'] or '')}</code>"
        rows.append(_row([name, _tensors(m, "inputs"), _tensors(m, "outputs"), _verdict(m)]))
    weights = sum(w["bytes"] for w in report["weights"] if not w["state"])
    head = (f"<b>{html.escape(title)}</b>, {_size(report['bytes'])}, weights {_size(weights)}, "
            f"on {html.escape(device.name)} ({html.escape(device.api)})")
    tail = f"<div>constants: {html.escape(', '.join(constants))}</div>" if constants else ""
    return f"<div>{head}</div><table>{''.join(rows)}</table>{tail}"
