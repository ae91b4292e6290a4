"""Hooks of the documentation site (`make docs`): what MkDocs has to know about this repository."""

from __future__ import annotations

from typing import Any

from mkdocs.structure.files import File, Files

from tools.site_pages import as_page, for_site, linked_sources, root_pages, source_page, with_drawings


def on_files(files: Files, *, config: Any) -> Files:
    """Add the pages of the root, and the source files that pages link to."""
    for uri, text in root_pages().items():
        files.append(File.generated(config, uri, content=text))
    pages = [file for file in files if file.src_uri.endswith(".md")]
    for source in sorted(
        {path for page in pages for path in linked_sources(page.content_string, page.src_uri)}
    ):
        files.append(File.generated(config, source_page(source), content=as_page(source)))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Make a page of the repository one of the site."""
    return for_site(markdown, page.file.src_uri)


def on_page_content(html: str, **_: Any) -> str:
    """Put the drawings into the page."""
    return with_drawings(html)
