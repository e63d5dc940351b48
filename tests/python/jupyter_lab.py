"""A JupyterLab server of its own, and a notebook in it as a person uses it: cells are run by their keys and read as shown."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import nbformat
from ports import free_port
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

TOKEN = "of-the-test"
# All cells stay in the page, whether they are in view or not; and no question about news.
WHOLE_PAGE = {"windowingMode": "none"}
NO_NEWS = {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}


@contextmanager
def lab(folder: Path, settings: Path) -> Iterator[str]:
    """Its address. Notebooks lie in `folder`; `settings` takes what JupyterLab writes."""
    tracker = settings / "lab/@jupyterlab/notebook-extension/tracker.jupyterlab-settings"
    page = settings / "config/labconfig/page_config.json"
    for path, content in ((tracker, WHOLE_PAGE), (page, NO_NEWS)):
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(content))
    port = free_port()
    places = {"JUPYTER_CONFIG_DIR": settings / "config", "JUPYTER_DATA_DIR": settings / "data", "JUPYTER_RUNTIME_DIR": settings / "run",
              "JUPYTERLAB_SETTINGS_DIR": settings / "lab", "JUPYTERLAB_WORKSPACES_DIR": settings / "workspaces",
              "IPYTHONDIR": settings / "ipython"}
    with (settings / "log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}", "--ServerApp.port_retries=0",
             "--ServerApp.ip=127.0.0.1", f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={folder}"],
            cwd=folder, env=os.environ | {name: str(path) for name, path in places.items()}, stdout=log, stderr=log)
    try:
        address = f"http://127.0.0.1:{port}"
        for _ in range(600):
            assert server.poll() is None, (settings / "log").read_text()
            try:
                urlopen(f"{address}/api/status?token={TOKEN}", timeout=5).close()
                break
            except OSError:
                time.sleep(0.2)
        yield address
    finally:
        server.terminate()
        server.wait(60)


class Notebook:
    """A notebook that is open in JupyterLab."""

    def __init__(self, browser: webdriver.Chrome, address: str, path: Path, cells: list[str]) -> None:
        nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells], metadata={
            "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}), path)
        self.browser, self._count = browser, len(cells)
        browser.get(f"{address}/lab/tree/{path.name}?token={TOKEN}")
        self.until(lambda: len(browser.find_elements(By.CSS_SELECTOR, ".jp-Notebook .jp-CodeCell")) == len(cells), "the cells")
        self.until(lambda: browser.find_elements(By.CSS_SELECTOR, '.jp-NotebookPanel-toolbar [data-status="idle"]'), "a kernel")
        if browser.find_element(By.ID, "jp-left-stack").is_displayed():
            ActionChains(browser).key_down(Keys.CONTROL).send_keys("b").key_up(Keys.CONTROL).perform()
            self.until(lambda: not browser.find_element(By.ID, "jp-left-stack").is_displayed(), "the side bar closes")

    def until(self, condition: Callable[[], Any], what: str, seconds: float = 180) -> Any:
        """Waits for something to be so in the page."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found := condition():
                return found
            time.sleep(0.1)
        state = self.browser.execute_script("""
            const status = document.querySelector('.jp-NotebookPanel-toolbar [data-status]');
            return {kernel: status && status.dataset.status, focus: document.activeElement.className,
                    dialogs: [...document.querySelectorAll('.jp-Dialog')].map(d => d.innerText)};""")
        raise AssertionError(f"not seen in {seconds} s: {what}; {state}\n"
                             f"{self.browser.find_element(By.CSS_SELECTOR, '.jp-Notebook').text[-3000:]}")

    def cell(self, index: int) -> WebElement:
        return self.browser.find_elements(By.CSS_SELECTOR, ".jp-Notebook .jp-CodeCell")[index]

    def run(self, index: int) -> None:
        """Selects a cell with the mouse and runs it with Shift+Enter. On a busy machine JupyterLab shows a notebook before it takes
        keys, and its panels may still move under the mouse, so both are given again while nothing has come of them."""
        self.until(lambda: self._select(index) and self._start(index), f"cell {index} started")

    def _select(self, index: int) -> bool:
        prompt = self.cell(index).find_element(By.CSS_SELECTOR, ".jp-InputPrompt")
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", prompt)
        prompt.click()
        return bool(self.browser.execute_script(
            "return arguments[0].classList.contains('jp-mod-active') && arguments[0].closest('.jp-Notebook').contains(document.activeElement)",
            self.cell(index)))

    def _start(self, index: int) -> bool:
        before = self.prompt(index)
        ActionChains(self.browser).key_down(Keys.SHIFT).send_keys(Keys.ENTER).key_up(Keys.SHIFT).perform()
        end = time.monotonic() + 15
        while time.monotonic() < end:
            if self.prompt(index) not in ("", before):
                return True
            time.sleep(0.05)
        return False

    def prompt(self, index: int) -> str:
        """`[ ]:` before, `[*]:` while, and `[3]:` after it runs."""
        return self.cell(index).find_element(By.CSS_SELECTOR, ".jp-InputPrompt").text.strip()

    def finish(self, index: int, seconds: float = 180) -> None:
        """Runs a cell to its end; it may raise nothing and print nothing to stderr, which JupyterLab marks alike."""
        self.run(index)
        self.until(lambda: "*" not in self.prompt(index), f"cell {index} done", seconds)
        assert not self.cell(index).find_elements(By.CSS_SELECTOR, '[data-mime-type="application/vnd.jupyter.stderr"]'), self.text(index)

    def output(self, index: int) -> WebElement:
        return self.cell(index).find_element(By.CSS_SELECTOR, ".jp-Cell-outputWrapper")

    def text(self, index: int) -> str:
        return self.output(index).text

    def find(self, index: int, selector: str) -> list[WebElement]:
        """Elements of a cell's output."""
        return self.output(index).find_elements(By.CSS_SELECTOR, selector)

    def loaded_images(self, index: int) -> list[int]:
        """Widths in px of the images of a cell's output that are decoded and visible."""
        widths: list[int] = self.browser.execute_script(
            "return [...arguments[0].querySelectorAll('img')].filter(i => i.complete && i.checkVisibility() && i.width > 0)"
            ".map(i => i.naturalWidth)", self.output(index))
        return widths
