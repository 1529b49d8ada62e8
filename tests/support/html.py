"""A reader of HTML pages for tests."""

from html.parser import HTMLParser

_EMPTY = ("meta",)


class Page(HTMLParser):
    """Checks that the tags of a page nest, and collects tags, attributes and text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text: list[str] = []
        self.feed(page)
        assert self.open == [], "every tag is closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in _EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def values(self, name: str) -> list[str | None]:
        """The values of all attributes `name`."""
        return [value for attribute, value in self.attributes if attribute == name]


def assert_stands_alone(markup: str) -> Page:
    """Check that a page is well formed and runs and loads nothing; returns it."""
    page = Page(markup)
    assert not {"script", "link", "img", "iframe"} & set(page.tags)
    assert page.values("src") == []
    assert all(str(address).startswith("#") for address in page.values("href"))
    assert "url(" not in markup
    return page
