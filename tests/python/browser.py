"""Headless Chromium of scripts/apt-test-packages.txt, by selenium."""

from __future__ import annotations

import shutil
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service


def open_chromium(profile: Path, width: int, height: int, reachable: str = "") -> webdriver.Chrome:
    """A browser whose console is kept. Every host name leads nowhere, but `reachable`."""
    driver = shutil.which("chromedriver")
    assert driver, "scripts/setup.sh --tests installs chromium-driver"
    options = Options()
    rules = "MAP * ~NOTFOUND" + (f", EXCLUDE {reachable}" if reachable else "")
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={profile}",
                     f"--window-size={width},{height}", f"--host-resolver-rules={rules}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=Service(driver))
