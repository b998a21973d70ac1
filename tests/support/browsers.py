"""A real browser without a window: Chromium from the system's packages, driven by Playwright, with axe-core."""

import shutil

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome")


def started():
    """Yield Chromium. Skips, with the reason, where it or the extra `dev-browser` is missing."""
    program = next(filter(None, map(shutil.which, _NAMES)), None)
    if program is None:
        pytest.skip("there is no Chromium here: apt-get install chromium")
    try:
        import axe_playwright_python  # noqa: F401
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        pytest.skip(f"{error.name} is not installed: the extra `dev-browser`")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield browser
        browser.close()


class Visit:
    """A page in a window of some width and colours, and what the browser tells about it."""

    def __init__(self, browser, path, *, width, scheme="light", touch=False):
        self._context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, has_touch=touch
        )
        self.page = self._context.new_page()
        self.page.set_default_timeout(120_000)  # on a machine with much else to do
        self.messages, self.requests = [], []
        self.page.on("console", lambda message: self.messages.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.messages.append(f"error: {error}"))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._context.close()

    def open_everything(self):
        """Open all details, so that the browser lays everything out."""
        self.page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")

    def faults(self):
        """Return the serious and critical faults that axe-core sees, with the first place of each."""
        from axe_playwright_python.sync_playwright import Axe

        violations = Axe().run(self.page).response["violations"]
        return [
            f"{each['id']}: {each['help']}: {each['nodes'][0]['html'][:200]}"
            for each in violations
            if each["impact"] in ("serious", "critical")
        ]
