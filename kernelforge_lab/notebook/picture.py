"""A static picture of a run for places without scripts: GitHub, nbviewer, nbconvert, a PDF."""

from __future__ import annotations

import base64
from html import escape
from typing import Final

from ..history import RegionRecord
from .summary import Summary, gain

WIDTH: Final = 760
_ROW: Final = 28
_ROWS_MAX: Final = 14
_LEFT: Final = 290
_BAR: Final = 310

# Okabe–Ito green for what is gained; greys for the rest, so that it prints.
_GAINED, _POSSIBLE, _SHARE, _VENDOR = "#00805c", "#ffffff", "#d3d9de", "#e6e9ec"
_INK, _QUIET, _LINE = "#1d2125", "#59626b", "#dadee2"


def svg(summary: Summary) -> str:
    """Headline and region bars as one SVG document; every text is escaped."""
    rows = _rows(summary)
    widest = max((row[2] for row in rows), default=1.0) or 1.0
    height = 96 + _ROW * len(rows) + 34
    font = "font-family='Liberation Sans, Helvetica, Arial, sans-serif'"
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{WIDTH}' height='{height}' "
        f"viewBox='0 0 {WIDTH} {height}' {font} font-size='13'>",
        f"<rect x='.5' y='.5' width='{WIDTH - 1}' height='{height - 1}' rx='8' fill='#fff' stroke='{_LINE}'/>",
        *_headline(summary),
        *(part for i, row in enumerate(rows) for part in _bar(row, 96 + i * _ROW, widest)),
        *_legend(height - 18),
        "</svg>",
    ]
    return "".join(parts)


def png(summary: Summary, *, scale: float = 2.0) -> bytes | None:
    """The same as PNG bytes; None when vl-convert is not there."""
    try:
        import vl_convert
    except ImportError:
        return None
    data: bytes = vl_convert.svg_to_png(svg(summary), scale=scale)
    return data


def img_tag(summary: Summary) -> str:
    """``<img>`` with the picture inside. Sites that sanitise drop inline SVG but keep this."""
    data = png(summary)
    kind, raw = ("png", data) if data is not None else ("svg+xml", svg(summary).encode())
    encoded = base64.b64encode(raw).decode()
    alt = escape(summary.text(), quote=True)
    return f'<img width="{WIDTH}" alt="{alt}" src="data:image/{kind};base64,{encoded}">'


_Row = tuple[str, str, float, float, float]  # title, note, share, gained fraction, possible fraction


def _rows(summary: Summary) -> list[_Row]:
    rows: list[_Row] = [_region_row(r) for r in summary.ranked]
    if summary.started:
        vendor = sorted(summary.started["vendor"], key=lambda v: -v["share"])
        rows += [(f"{v['name']} ×{v['count']}", "library", v["share"], -1.0, 0.0) for v in vendor]
    rows.sort(key=lambda row: -row[2])
    shown, rest = rows[:_ROWS_MAX], rows[_ROWS_MAX:]
    if rest:
        shown.append((f"{len(rest)} smaller ones", "", sum(r[2] for r in rest), -1.0, 0.0))
    return shown


def _region_row(region: RegionRecord) -> _Row:
    gained = 1 - 1 / gain(region)
    ceiling = region.info["ceiling"] if region.info["eligible"] else 1.0
    possible = max(0.0, 1 - 1 / ceiling - gained) if ceiling > 1 else 0.0
    note = f"{gain(region):.2f}×" if gained else ("" if region.info["eligible"] else "not eligible")
    return f"{region.info['title']} ×{region.info['count']}", note, region.info["share"], gained, possible


def _headline(summary: Summary) -> list[str]:
    started = summary.started
    where = " · ".join(filter(None, (started.get("target"), started.get("device"))))
    step = summary.step
    lines = [
        f"<text x='20' y='32' font-size='15' font-weight='bold' fill='{_INK}'>{_cut(summary.title, 40)}</text>",
        f"<text x='{WIDTH - 20}' y='32' text-anchor='end' fill='{_QUIET}'>{_cut(where, 60)} · {summary.state}</text>",
        f"<text x='20' y='60' font-size='20' font-weight='bold' fill='{_INK}'>{_cut(summary.how_good(), 60)}</text>",
    ]
    note = f"ceiling {summary.ceiling:.2f}×" if summary.ceiling else ""
    if step:
        note = f"{step['stock_ms']:.1f} → {step['forged_ms']:.1f} ms per step against {step['stock']} · {note}"
    lines.append(f"<text x='20' y='80' fill='{_QUIET}'>{_cut(note, 100)}</text>")
    return lines


def _bar(row: _Row, y: int, widest: float) -> list[str]:
    title, note, share, gained, possible = row
    width = max(2.0, share / widest * _BAR)
    fill = _SHARE if gained >= 0 else _VENDOR
    ink = _INK if gained >= 0 else _QUIET
    parts = [
        f"<text x='20' y='{y + 20}' fill='{ink}'>{_cut(title, 42)}</text>",
        f"<rect x='{_LEFT}' y='{y + 9}' width='{width:.1f}' height='14' rx='2' fill='{fill}'/>",
    ]
    if gained > 0:
        parts.append(
            f"<rect x='{_LEFT}' y='{y + 9}' width='{width * gained:.1f}' height='14' rx='2' fill='{_GAINED}'/>"
        )
    if possible > 0:
        parts.append(
            f"<rect x='{_LEFT + width * max(0.0, gained):.1f}' y='{y + 9.5}' width='{width * possible:.1f}' "
            f"height='13' fill='{_POSSIBLE}' stroke='{_GAINED}'/>"
        )
    parts += [
        f"<text x='{_LEFT + _BAR + 50}' y='{y + 20}' text-anchor='end' fill='{ink}'>{100 * share:.1f}%</text>",
        f"<text x='{_LEFT + _BAR + 62}' y='{y + 20}' fill='{_QUIET}'>{_cut(note, 12)}</text>",
    ]
    return parts


def _legend(y: int) -> list[str]:
    parts, x = [], _LEFT
    for label, fill in (("gained", _GAINED), ("still possible", _POSSIBLE), ("at the roof", _SHARE)):
        stroke = f" stroke='{_GAINED}'" if fill == _POSSIBLE else ""
        parts.append(f"<rect x='{x}' y='{y - 9}' width='14' height='9' rx='2' fill='{fill}'{stroke}/>")
        parts.append(f"<text x='{x + 20}' y='{y}' font-size='11' fill='{_QUIET}'>{label}</text>")
        x += 38 + 6 * len(label)
    return parts


def _cut(text: str, longest: int) -> str:
    return escape(text if len(text) <= longest else text[: longest - 1] + "…")
