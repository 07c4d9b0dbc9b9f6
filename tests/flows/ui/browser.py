"""A real Chromium without a window, and the parts of the Prefect UI as a person finds them."""

from __future__ import annotations

import base64
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from playwright.sync_api import Browser as Program
from playwright.sync_api import (
    BrowserType,
    Error,
    Locator,
    Page,
    Route,
    ViewportSize,
    sync_playwright,
)

from tests.e2e.workplace import REPOSITORY

WAIT_MS = 60_000
"""How long a part of a page may take; it shares the machine with other tests."""

TURN_MS = 20_000
"""How long another page may take to show within the one that is loaded; then it is loaded."""

TURN = """path => {
    history.pushState({}, "", path)
    dispatchEvent(new PopStateEvent("popstate", {state: history.state}))
}"""

LENGTH = """() => Math.max(
    ...[...document.querySelectorAll("main, body, form, div")].map(part => part.scrollHeight))"""

NEW_UI = "/v2/"
BETWEEN = "/v2/concurrency-limits"
"""Shows nothing that a test waits for, so what is seen afterwards is new."""

OPENINGS = 10
"""How often a page is opened until it shows what it should."""

KEPT_LOGIN = "prefect-password"
"""Where the pages of Prefect keep the login of whoever has signed in."""

SIZE: ViewportSize = {"width": 1400, "height": 1000}

DRAWS = ("--use-angle=swiftshader", "--enable-unsafe-swiftshader")
"""A GPU in software, without which there are no graphs. It is dear."""

NO_GPU = ("--disable-gpu", "--disable-software-rasterizer")
"""Else a process of its own would draw as if it were a GPU."""

COLOURS = """async picture => {
    const image = await createImageBitmap(await (await fetch(picture)).blob())
    const copy = new OffscreenCanvas(image.width, image.height).getContext("2d")
    copy.drawImage(image, 0, 0)
    const pixels = new Uint32Array(copy.getImageData(0, 0, image.width, image.height).data.buffer)
    return new Set(pixels).size
}"""

_FIELD = "xpath=ancestor::div[fieldset][1]"


class Browser:
    """One page of a browser, on one Prefect server.

    Args:
        page: The page.
        url: Address of the server.
        login: `user:password`, with which the page is signed in.

    Attributes:
        page: The page.
        outside: Addresses of other servers that the page wanted something from.
    """

    def __init__(self, page: Page, url: str, login: str) -> None:
        self.page, self._url, self._login = page, url, login
        page.add_init_script(f"localStorage.setItem({KEPT_LOGIN!r}, btoa({login!r}))")
        self.outside: set[str] = set()
        page.set_default_timeout(WAIT_MS)
        page.route(re.compile(f"^(?!{re.escape(url)}/|data:|blob:)"), self._refuse)
        page.route(re.compile(f"^{re.escape(url)}/api/"), _fetch)

    def open(self, path: str, shows: str) -> None:
        """Open a path of the UI and wait until it shows a text."""
        with suppress(Error):
            if self._turned_to(path, shows):
                return
        for _ in range(OPENINGS - 1):
            with suppress(Error):
                self.page.goto(f"{self._url}{path}")
                self.see(shows)
                return
        self.page.goto(f"{self._url}{path}")
        self.see(shows)

    def see(self, text: str) -> None:
        """Wait until the page shows a text."""
        self.page.get_by_text(text).first.wait_for()

    def text(self) -> str:
        """All that the page says."""
        return self.page.locator("body").inner_text()

    def field(self, *labels: str) -> Field:
        """A field of a form, by the labels of the boxes around it and its own."""
        found = self.page.locator("body")
        for label in labels:
            found = found.locator("label").get_by_text(label, exact=True).first.locator(_FIELD)
        return Field(found)

    def submitted(self) -> str:
        """Submit the form of a run; the id of the run that it made."""
        try:
            with self.page.expect_response(re.compile("/create_flow_run$")) as answered:
                self.page.get_by_role("button", name="Submit").click()
        except Error as error:
            self.picture("form-not-sent")
            raise AssertionError(f"no run was made by this form:\n{self.text()}") from error
        return str(answered.value.json()["id"])

    def labels(self) -> list[str]:
        """Labels of all fields of a form."""
        self.page.locator("label").first.wait_for()
        return [label.strip() for label in self.page.locator("label").all_inner_texts()]

    def json_fields(self) -> set[str]:
        """Labels of the fields that are filled in as JSON."""
        editors = self.page.locator(".cm-editor").locator(_FIELD).all()
        labels = [editor.locator("label").first.inner_text() for editor in editors]
        return {label.removesuffix(" (Optional)") for label in labels}

    def tab(self, name: str, *shows: str) -> str:
        """Open a tab of the page and wait until it shows these texts; all that it says."""
        self.page.get_by_role("tab", name=name, exact=True).click()
        panel = self.page.locator("[role=tabpanel][data-state=active]").first
        for text in shows:
            panel.get_by_text(text).first.wait_for()
        return panel.inner_text()

    def length(self) -> int:
        """Pixels from the top of the page to its end, in whatever part of it scrolls."""
        return int(self.page.evaluate(LENGTH))

    @contextmanager
    def with_graphs(self) -> Iterator[Browser]:
        """Another browser on the same server for a while, which draws graphs."""
        assert self.page.context.browser
        program = _started(self.page.context.browser.browser_type, DRAWS)
        try:
            page = program.new_page(viewport=SIZE, reduced_motion="reduce")
            yield Browser(page, self._url, self._login)
        finally:
            program.close()

    def has_drawn(self, colours: int) -> bool:
        """Whether the graph of the page has at least so many colours; icons alone have 225."""
        shot = base64.b64encode(self.page.locator("canvas").first.screenshot()).decode()
        return int(self.page.evaluate(COLOURS, f"data:image/png;base64,{shot}")) >= colours

    def picture(self, name: str, height: int = 1000) -> None:
        """Keep a picture of the page for whoever wants to look at it."""
        folder = Path(os.environ.get("MOORAGE_SCREENSHOTS", REPOSITORY / ".ci" / "screenshots"))
        folder.mkdir(parents=True, exist_ok=True)
        self.page.set_viewport_size({"width": 1400, "height": height})
        self.page.screenshot(path=folder / f"{name}.png", full_page=True)
        self.page.set_viewport_size(SIZE)

    def _turned_to(self, path: str, shows: str) -> bool:
        """Go on to another path of the new UI, as its links do: loading a page takes seconds.

        Returns:
            Whether the page was one of that UI, and went there.
        """
        if not (path.startswith(NEW_UI) and self.page.url.startswith(f"{self._url}{NEW_UI}")):
            return False
        text = self.page.get_by_text(shows).first
        self.page.evaluate(TURN, BETWEEN)
        text.wait_for(state="hidden", timeout=TURN_MS)
        self.page.evaluate(TURN, path)
        text.wait_for(timeout=TURN_MS)
        return True

    def _refuse(self, route: Route) -> None:
        self.outside.add(route.request.url)
        route.abort()


def _fetch(route: Route) -> None:
    """Ask the API from outside of Chromium, which drops what is under way when a network changes.

    It happens while the test waits for the page, so a test waits for the page before anything else.

    Other tests plug cables of containers all the time. A page whose files were dropped is opened
    again; a form whose answer was dropped would be lost. A server that closes an idle connection at
    the moment of a request has not read it, so it is sent again.
    """
    route.fulfill(response=route.fetch(timeout=WAIT_MS, max_retries=2))


class Field:
    """A labelled field of a form."""

    def __init__(self, place: Locator) -> None:
        self.place = place

    def write(self, text: str) -> None:
        """Fill in a text or a number."""
        self.place.locator("textarea, input").first.fill(text)

    def write_json(self, text: str) -> None:
        """Fill in names and values."""
        self.place.locator(".cm-content").first.click()
        self.place.page.keyboard.press("ControlOrMeta+A")
        self.place.page.keyboard.insert_text(text)

    def choose(self, option: str) -> None:
        """Choose from a list, which may close under one's hands when the form is drawn again."""
        button = self.place.locator("button[aria-haspopup=listbox]").first
        listed = self.place.page.get_by_role("option", name=option, exact=True)
        for _ in range(OPENINGS):
            if listed.count() == 0:
                button.click()
            with suppress(Error):
                listed.click(force=True, timeout=WAIT_MS / OPENINGS)
            if button.inner_text() == option:
                return
        raise AssertionError(f"{option} could not be chosen from {button.inner_text()}")

    def turn_to(self, kind: str) -> None:
        """Choose among the kinds of value that the field takes."""
        self.place.get_by_role("tab", name=kind, exact=True).first.click()

    def labels(self) -> list[str]:
        """Labels of all fields inside, its own first."""
        return self.place.locator("label").all_inner_texts()


@contextmanager
def browsing(url: str, login: str) -> Iterator[Browser]:
    """A browser for a while, signed in."""
    with chromium() as program:
        yield Browser(program.new_page(viewport=SIZE, reduced_motion="reduce"), url, login)


@contextmanager
def chromium(*arguments: str) -> Iterator[Program]:
    """Chromium for a while, without graphs; skips where there is none."""
    if shutil.which("chromium") is None:
        pytest.skip("chromium is not installed")
    with sync_playwright() as playwright:
        program = _started(playwright.chromium, (*arguments, *NO_GPU))
        try:
            yield program
        finally:
            program.close()


def _started(kind: BrowserType, arguments: tuple[str, ...]) -> Program:
    # Chromium's own sandbox does not work for root; the pages are ours.
    more = ("--no-sandbox",) if os.getuid() == 0 else ()
    return kind.launch(executable_path=shutil.which("chromium"), args=[*arguments, *more])
