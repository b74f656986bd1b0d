"""A static picture of a run for places without scripts: GitHub, nbviewer, nbconvert, a PDF."""

from __future__ import annotations

import base64
import zlib
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
        (
            f"<svg xmlns='http://www.w3.org/2000/svg' width='{WIDTH}' height='{height}' "
            f"viewBox='0 0 {WIDTH} {height}' {font} font-size='13'>"
        ),
        _rect(0.5, 0.5, WIDTH - 1, height - 1, f"rx='8' fill='#fff' stroke='{_LINE}'"),
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
    return _deflated(vl_convert.svg_to_png(svg(summary), scale=scale))


def img_tag(summary: Summary) -> str:
    """``<img>`` with the picture inside. Sites that sanitise drop inline SVG but keep this."""
    data = png(summary)
    kind, raw = ("png", data) if data is not None else ("svg+xml", svg(summary).encode())
    encoded = base64.b64encode(raw).decode()
    alt = escape(summary.text(), quote=True)
    return f'<img width="{WIDTH}" alt="{alt}" src="data:image/{kind};base64,{encoded}">'


def _deflated(data: bytes) -> bytes:
    """The same PNG packed harder: vl-convert optimises for speed, and a notebook keeps every byte."""
    at, pixels, head = 8, b"", b""
    while at < len(data):
        size = int.from_bytes(data[at : at + 4])
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        if kind == b"IDAT":
            pixels += body
        elif kind == b"IHDR":
            head = body
        at += 12 + size
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(zlib.decompress(pixels), 9)), (b"IEND", b""))
    packed = b"".join(
        len(body).to_bytes(4) + kind + body + zlib.crc32(kind + body).to_bytes(4) for kind, body in chunks
    )
    return data[:8] + packed


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
    note = f"ceiling {summary.ceiling:.2f}×" if summary.ceiling else ""
    if step:
        note = (
            f"{step['stock_ms']:.1f} → {step['forged_ms']:.1f} ms per step against {step['stock']} · {note}"
        )
    right = WIDTH - 20
    return [
        _text(20, 32, summary.title, 40, f"font-size='15' font-weight='bold' fill='{_INK}'"),
        _text(right, 32, f"{where} · {summary.state}", 70, f"text-anchor='end' fill='{_QUIET}'"),
        _text(20, 60, summary.how_good(), 60, f"font-size='20' font-weight='bold' fill='{_INK}'"),
        _text(20, 80, note, 100, f"fill='{_QUIET}'"),
    ]


def _bar(row: _Row, y: int, widest: float) -> list[str]:
    title, note, share, gained, possible = row
    width = max(2.0, share / widest * _BAR)
    fill = _SHARE if gained >= 0 else _VENDOR
    ink = _INK if gained >= 0 else _QUIET
    won = width * max(0.0, gained)
    parts = [
        _text(20, y + 20, title, 42, f"fill='{ink}'"),
        _rect(_LEFT, y + 9, width, 14, f"rx='2' fill='{fill}'"),
    ]
    if won > 0:
        parts.append(_rect(_LEFT, y + 9, won, 14, f"rx='2' fill='{_GAINED}'"))
    if possible > 0:
        style = f"fill='{_POSSIBLE}' stroke='{_GAINED}'"
        parts.append(_rect(_LEFT + won, y + 9.5, width * possible, 13, style))
    end = _LEFT + _BAR
    parts.append(_text(end + 50, y + 20, f"{100 * share:.1f}%", 8, f"text-anchor='end' fill='{ink}'"))
    parts.append(_text(end + 62, y + 20, note, 12, f"fill='{_QUIET}'"))
    return parts


def _legend(y: int) -> list[str]:
    parts: list[str] = []
    x = _LEFT
    for label, fill in (("gained", _GAINED), ("still possible", _POSSIBLE), ("at the roof", _SHARE)):
        stroke = f" stroke='{_GAINED}'" if fill == _POSSIBLE else ""
        parts.append(_rect(x, y - 9, 14, 9, f"rx='2' fill='{fill}'{stroke}"))
        parts.append(_text(x + 20, y, label, 40, f"font-size='11' fill='{_QUIET}'"))
        x += 38 + 6 * len(label)
    return parts


def _rect(x: float, y: float, width: float, height: float, style: str) -> str:
    return f"<rect x='{x:.1f}' y='{y:.1f}' width='{width:.1f}' height='{height:.1f}' {style}/>"


def _text(x: float, y: float, text: str, longest: int, style: str) -> str:
    return f"<text x='{x:g}' y='{y:g}' {style}>{_cut(text, longest)}</text>"


def _cut(text: str, longest: int) -> str:
    return escape(text if len(text) <= longest else text[: longest - 1] + "…")
