#!/usr/bin/env python3
"""Says which links of a site lead nowhere: check_links.py DIRECTORY. Links to other hosts are not followed."""
import html.parser
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.anchors = set()
        self.links = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value)
            if value and ((name == "href" and tag in ("a", "link", "area")) or name == "src"):
                self.links.append(value)


def main(root):
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in root.rglob("*.html")}
    wrong = []
    count = 0
    for path, page in pages.items():
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            count += 1
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            anchor = urllib.parse.unquote(parts.fragment)
            if not target.is_file():
                wrong.append(f"{path}: {link}: there is no such file")
            elif anchor and anchor not in pages.get(target, Page("")).anchors:
                wrong.append(f"{path}: {link}: there is no such place on that page")
    print("\n".join(wrong + [f"{len(pages)} pages, {count} links, {len(wrong)} of them lead nowhere"]))
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
