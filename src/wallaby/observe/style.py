"""The style that the report and the live page share: light and dark, and readable on a phone."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
:root { color-scheme: light dark; --ink: #1d2530; --dim: #5f6b7a; --paper: #fff; --stripe: #f4f6f8; --line: #d5dbe2;
  --read: #3b82c4; --execute: #3f9d5a; --retrace: #e08a1e; --reread: #8e5bc0; --bad: #cc3b3b; }
@media (prefers-color-scheme: dark) { :root { --ink: #e5e9ee; --dim: #9aa6b4; --paper: #14181d; --stripe: #1b2129;
  --line: #333c47; } }
body { font: 14px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 1220px; padding: 0 1rem; }
h1 { font-size: 1.4rem; margin: 0 } h2 { font-size: 1.05rem; margin: 2rem 0 .5rem }
p.error { border-left: 4px solid var(--bad); padding: .5rem 1rem; background: var(--stripe); white-space: pre-wrap }
.facts { display: flex; flex-wrap: wrap; gap: .5rem 2rem; margin: 1rem 0 }
.facts b { display: block; font-size: 1.1rem }
.facts span { color: var(--dim) } .scroll { overflow-x: auto }
table { border-collapse: collapse; width: 100% } th, td { padding: .25rem .6rem; text-align: right;
  border-bottom: 1px solid var(--line) } th { color: var(--dim); font-weight: 500 }
td.l, th.l { text-align: left }
svg text { fill: var(--ink); font: 12px system-ui, sans-serif } svg .small { fill: var(--dim); font-size: 11px }
svg .name { font-weight: 600 } svg .loss { fill: var(--bad); font-size: 11px }
.box { fill: var(--stripe); stroke: var(--line) } .box.read { stroke: var(--read) }
.box.execute { stroke: var(--execute) }
.edge { fill: none; stroke: var(--dim); stroke-width: 1.4 } .edge.side { stroke-dasharray: 4 3 }
.tip { fill: var(--dim) }
.tick { stroke: var(--line) } .stripe { fill: var(--stripe) } .frozen { fill: var(--bad); opacity: .35 }
.read.bar, .key.read { fill: var(--read); background: var(--read) }
.execute.bar, .key.execute { fill: var(--execute); background: var(--execute) }
.retrace.bar, .key.retrace { fill: var(--retrace); background: var(--retrace) }
.re-read.bar, .key.re-read { fill: var(--reread); background: var(--reread) }
.failed.bar, .key.failed { fill: var(--bad); background: var(--bad) }
.key { display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin: 0 .3em 0 1em }
a { color: var(--read) } code, pre { font: 13px/1.45 ui-monospace, monospace }
pre { background: var(--stripe); padding: .6rem .8rem; white-space: pre-wrap; overflow-wrap: anywhere }
ol.findings { padding-left: 1.2rem } ol.findings i { color: var(--dim); font-style: normal; display: block }
.native { color: var(--execute) } .part { color: var(--retrace) } .Spark { color: var(--reread) }
.state { color: var(--dim) } .bad { color: var(--bad) } .rate { fill: var(--execute) } .refused { fill: var(--bad) }
.meter { fill: var(--stripe); stroke: var(--line) } .used { fill: var(--execute) } .used.high { fill: var(--bad) }
td { white-space: nowrap } td.q, td.why { white-space: normal; min-width: 13rem; overflow-wrap: anywhere }
.box.hot { stroke: var(--bad); stroke-width: 2.5 }
nav { color: var(--dim); margin-bottom: 1rem }
@media (max-width: 640px) { body { margin: 1rem auto; font-size: 13px } th, td { padding: .2rem .35rem } }
footer { color: var(--dim); margin-top: 2rem }
"""

#: What the colours of tasks mean.
KEY: Final = "".join(
    f'<span class="key {style}"></span>{text}'
    for style, text in (
        ("read", "read"),
        ("execute", "execute"),
        ("retrace", "retrace, after a loss"),
        ("re-read", "re-read, after a loss"),
        ("failed", "failed"),
    )
)
