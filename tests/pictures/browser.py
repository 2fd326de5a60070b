"""A browser without a window, for tests of pages: Chromium, controlled by its DevTools protocol over a pipe."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find():
    """Path of the browser's program, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """A page in a browser.

    ``open`` shows a file, ``eval`` computes JavaScript in it, ``screenshot`` takes a picture. ``messages`` has the
    errors and warnings of the page.
    """

    def __init__(self, width=1200, height=900):
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
                 "--disable-dev-shm-usage", "--disable-background-networking", "--disable-extensions",
                 f"--user-data-dir={self._profile.name}", f"--window-size={width},{height}", "--remote-debugging-pipe"]
        place = 'exec "$@" 3<&0 4>&1 </dev/null >/dev/null'  # the protocol is spoken over 3 and 4
        self._process = subprocess.Popen(["sh", "-c", place, "sh", find(), *flags, "about:blank"], bufsize=0,
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                         start_new_session=True)
        self._in, self._out = self._process.stdout.fileno(), self._process.stdin.fileno()
        self._numbers, self._buffer, self.messages, self._session = itertools.count(1), b"", [], None
        self.requests, self._loaded = [], 0
        target = next(each for each in self._call("Target.getTargets")["targetInfos"] if each["type"] == "page")
        self._session = self._call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def close(self):
        """Ends the browser and all its processes."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()
        self._profile.cleanup()

    def _call(self, method, **params):
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def _read(self):
        while b"\0" not in self._buffer:
            more = os.read(self._in, 1 << 16)
            if not more:
                raise RuntimeError("the browser has gone")
            self._buffer += more
        text, _, self._buffer = self._buffer.partition(b"\0")
        event = json.loads(text)
        method, params = event.get("method"), event.get("params", {})
        if method == "Page.loadEventFired":
            self._loaded += 1
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.messages.append(params["exceptionDetails"].get("exception", {}).get("description", "an exception"))
        elif method == "Log.entryAdded":
            self.messages.append(params["entry"]["text"])
        return event

    def open(self, path):
        """Opens a file, and waits until it is loaded."""
        self.messages, self.requests, before = [], [], self._loaded
        self._call("Page.navigate", url=Path(path).absolute().as_uri())
        while self._loaded == before:
            self._read()

    def size(self, width, height):
        """Sets the size of the window."""
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def scheme(self, name):
        """Sets the reader's preference for light or dark."""
        self._call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def eval(self, code):
        """Value of an expression in the page."""
        found = self._call("Runtime.evaluate", expression=code, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"]["exception"].get("description", "an exception"))
        return found["result"].get("value")

    def key(self, name):
        """Presses a key at the focus."""
        for kind in ("keyDown", "keyUp"):
            self._call("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=13)

    def type(self, text):
        """Types a text at the focus."""
        self._call("Input.insertText", text=text)

    def click(self, selector):
        """Clicks on the middle of the element that a selector finds."""
        x, y = self.eval(f"(() => {{const element = document.querySelector({json.dumps(selector)});"
                         "element.scrollIntoView({block: 'center', inline: 'center'});"
                         "const box = element.getBoundingClientRect();"
                         "return [box.x + box.width / 2, box.y + box.height / 2]})()")
        for kind in ("mousePressed", "mouseReleased"):
            self._call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def screenshot(self, path, whole=True):
        """Writes the visible page to a PNG file."""
        data = self._call("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        Path(path).write_bytes(base64.b64decode(data))
