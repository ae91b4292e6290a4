"""What the documentation site makes of a page of this repository: links, lists, drawings and source files, as text.

The pages are those of the repository, and their links work there. For the site, the pages at the root of the repository
are added, links are rewritten to where a page is, and a source file that a page links to becomes a page of its own.
Drawings become part of their page, so that they follow its colours. `site_hooks.py` connects this with MkDocs.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: The pages outside docs/, and their names in the site.
ROOT_PAGES = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "LICENSE": "license.md",
}
_REPOSITORY_PATH = {site: repository for repository, site in ROOT_PAGES.items()}
_LINK = re.compile(r"(\]\()([^)\s]+)(\))")
_ELSEWHERE = re.compile(r"[a-z]+:|#")
_FENCE = re.compile(r"^ *```")
_LIST_ITEM = re.compile(r"^(?:[-*]|\d+\.) ")
_DRAWING = re.compile(r'<img alt="([^"]*)" src="[^"]*?(drawings/[\w-]+\.svg)" ?/?>')
_FLOWCHART = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_BOX = re.compile(r'(\w+)\["(\w+: [^"]+)"\]')
_ARROW = re.compile(r"^ *(\w+)(?:\[[^]]*\])? (-->|-\.->) (\w+)", re.MULTILINE)
_LANGUAGES = {
    ".py": "python",
    ".java": "java",
    ".lua": "lua",
    ".sql": "sql",
    ".toml": "toml",
    ".json": "json",
}


def root_pages() -> dict[str, str]:
    """The pages of the root, by their names in the site."""
    texts = {site: (ROOT / name).read_text(encoding="utf-8") for name, site in ROOT_PAGES.items()}
    return {
        site: text if _REPOSITORY_PATH[site].endswith(".md") else f"# License\n\n```text\n{text}```\n"
        for site, text in texts.items()
    }


def for_site(markdown: str, uri: str) -> str:
    """A page with links as they are in the site, flowcharts as lists, and lists as Python-Markdown wants them."""

    def rewritten(found: re.Match[str]) -> str:
        return found[1] + site_link(uri, found[2]) + found[3]

    lines = [line if is_code else _LINK.sub(rewritten, line) for line, is_code in _with_code(markdown)]
    return indented(_FLOWCHART.sub(_as_list, "\n".join(lines)))


def with_drawings(html: str) -> str:
    """A page with its drawings in it."""
    return _DRAWING.sub(_inlined, html)


def _inlined(found: re.Match[str]) -> str:
    text = (ROOT / "docs" / found[2]).read_text(encoding="utf-8")
    drawing = text[text.index("<svg") :]
    # The page's own style has the colours; `role` and the label are for readers who hear the page.
    drawing = re.sub(r"<style>.*?</style>", "", drawing, count=1, flags=re.DOTALL)
    drawing = drawing.replace("<svg ", f'<svg role="img" aria-label="{found[1]}" ', 1)
    return f'<span class="drawing-frame">{drawing}</span>'


def _as_list(found: re.Match[str]) -> str:
    """The boxes of a Mermaid flowchart, each with the boxes that it points to: no script draws them here."""
    labels = dict(_BOX.findall(found[1]))
    targets: dict[str, list[str]] = {name: [] for name in labels}
    for tail, arrow, head in _ARROW.findall(found[1]):
        targets[tail].append(head + (" (in another process)" if arrow == "-.->" else ""))
    return "\n".join(
        f"- **{name}**: {label.partition(': ')[2]}"
        + (f" → {', '.join(targets[name])}" if targets[name] else "")
        for name, label in labels.items()
    )


def _with_code(markdown: str) -> Iterator[tuple[str, bool]]:
    """Every line, and whether it is a part of a code block."""
    inside = False
    for line in markdown.splitlines():
        fence = bool(_FENCE.match(line))
        yield line, inside or fence
        inside ^= fence


def _repository_path(uri: str) -> str:
    return _REPOSITORY_PATH.get(uri, f"docs/{uri}")


def _target(uri: str, link: str) -> tuple[str, str]:
    """What a link of a page leads to, as a path in the repository, and the heading there."""
    name, _, anchor = link.partition("#")
    return posixpath.normpath(posixpath.join(posixpath.dirname(_repository_path(uri)), name)), anchor


def site_link(uri: str, link: str) -> str:
    """A link of a page, as it is in the site."""
    if _ELSEWHERE.match(link):
        return link
    path, anchor = _target(uri, link)
    if path in ROOT_PAGES:
        there = ROOT_PAGES[path]
    elif path.startswith("docs/"):
        there = path.removeprefix("docs/")
        there += "/README.md" if (ROOT / path).is_dir() else ""
    else:
        there = source_page(path)
    relative = posixpath.relpath(there, posixpath.dirname(uri) or ".")
    return f"{relative}#{anchor}" if anchor else relative


def linked_sources(markdown: str, uri: str) -> Iterator[str]:
    """The source files that a page links to."""
    for line, is_code in _with_code(markdown):
        for _, link, _ in _LINK.findall("" if is_code else line):
            path, _ = _target(uri, link)
            if not _ELSEWHERE.match(link) and path not in ROOT_PAGES and not path.startswith("docs/"):
                yield path


def source_page(path: str) -> str:
    """The name of the page of a source file."""
    return f"source/{path}.md"


def as_page(path: str) -> str:
    """A source file as a page; a folder as the list of what is in it, and a notebook as its cells."""
    there = ROOT / path
    head = f"---\nsearch:\n  exclude: true\nhide:\n  - toc\n---\n\n# `{path}`\n\n"
    if there.is_dir():
        return head + "\n".join(f"- `{child.name}`" for child in sorted(there.iterdir())) + "\n"
    fence = "`" * 6
    if there.suffix == ".ipynb":
        cells = json.loads(there.read_text(encoding="utf-8"))["cells"]
        texts = [("".join(cell["source"]), cell["cell_type"] == "code") for cell in cells]
        return head + "\n\n".join(
            f"{fence}python\n{text}\n{fence}" if is_code else text for text, is_code in texts
        )
    language = _LANGUAGES.get(there.suffix, "text")
    return f"{head}{fence}{language}\n{there.read_text(encoding='utf-8')}{fence}\n"


def indented(markdown: str) -> str:
    """Nested lists and paragraphs of list items with four spaces a level, not two or three."""
    lines: list[str] = []
    in_list = False
    shift = ""
    for line, is_code in _with_code(markdown):
        indent = len(line) - len(line.lstrip(" "))
        if not is_code or (not shift and _FENCE.match(line)):
            if _LIST_ITEM.match(line):
                in_list = True
            elif line.strip() and not indent:
                in_list = False
            levels = 0 if not in_list or not indent else 1 if indent < 4 else 2
            shift = " " * max(4 * levels - indent, 0)
        lines.append(shift + line if line.strip() else line)
        if not is_code:
            shift = ""
    return "\n".join(lines) + "\n"
