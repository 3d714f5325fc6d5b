"""Debian's chromium without a window, led through its DevTools protocol, over the pipe that it offers for that.

Page.evaluate() runs an expression in the page, wait_for() until one is true; what the page complains about (console,
exceptions, refused by its policy) is in Page.complaints, what came over the wire in Page.wire_bytes.
"""

import base64
import itertools
import json
import os
import select
import signal
import shutil
import subprocess
import time

TIMEOUT_S = 60
PROGRAM = shutil.which("chromium")


class Browser:
    def __init__(self, directory):
        """`directory`: of its own, for its profile."""
        theirs_in, self.to = os.pipe()
        self.source, theirs_out = os.pipe()
        self.process = subprocess.Popen(
            ["sh", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "sh", PROGRAM, "--headless",
             "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
             f"--user-data-dir={directory}"],
            pass_fds=(theirs_in, theirs_out), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(theirs_in)
        os.close(theirs_out)
        self.numbers, self.unread, self.pages = itertools.count(1), b"", {}

    def close(self):
        os.killpg(self.process.pid, signal.SIGKILL)  # those that draw its pages, too
        self.process.wait()
        os.close(self.to)
        os.close(self.source)

    def send(self, method, session=None, **parameters):
        """The answer's result."""
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") != number:
                continue
            if "error" in answer:
                raise AssertionError(f"{method}: {answer['error']}")
            return answer["result"]

    def receive(self):
        """The next message; an event goes to its page first."""
        while b"\0" not in self.unread:
            if not select.select([self.source], [], [], TIMEOUT_S)[0]:
                raise AssertionError("the browser does not answer")
            received = os.read(self.source, 1 << 20)
            if not received:
                raise AssertionError(f"the browser ended with status {self.process.wait()}")
            self.unread += received
        message, self.unread = self.unread.split(b"\0", 1)
        message = json.loads(message)
        if "method" in message and message.get("sessionId") in self.pages:
            self.pages[message["sessionId"]].note(message["method"], message["params"])
        return message

    def open(self, url, width=1100, height=1080, dark=False):
        return Page(self, url, width, height, dark)


class Page:
    def __init__(self, browser, url, width, height, dark):
        self.browser, self.complaints, self.wire_bytes = browser, [], 0
        self.target = browser.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.send("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        browser.pages[self.session] = self
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)
        self.send("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.go(url)

    def send(self, method, **parameters):
        return self.browser.send(method, self.session, **parameters)

    def note(self, method, parameters):
        if method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(parameters["exceptionDetails"]))
        elif method == "Log.entryAdded":
            self.complaints.append(f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}")
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(json.dumps(parameters["args"]))
        elif method == "Network.responseReceived":
            self.wire_bytes += parameters["response"]["encodedDataLength"]
        elif method == "Network.dataReceived":
            self.wire_bytes += parameters["encodedDataLength"]

    def go(self, url):
        self.send("Page.navigate", url=url)

    def evaluate(self, expression):
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait_for(self, expression):
        """Its value, once that is true; an error of the page counts as false."""
        end = time.monotonic() + TIMEOUT_S
        while not (value := self.evaluate(f"(() => {{ try {{ return {expression} }} catch {{ }} }})()")):
            if time.monotonic() > end:
                raise AssertionError(f"waited in vain for {expression}; {self.complaints}\n"
                                     + self.evaluate("document.body.innerText"))
            time.sleep(0.05)
        return value

    def press(self, key):
        text = {"Enter": "\r", " ": " "}.get(key, "")
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, code=key, text=text,
                  windowsVirtualKeyCode={"Enter": 13, " ": 32, "Tab": 9, "ArrowLeft": 37, "Home": 36, "Escape": 27}[key])
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, code=key)

    def type(self, text):
        self.send("Input.insertText", text=text)

    def screenshot(self, path):
        image = self.send("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(image))

    def close(self):
        self.browser.send("Target.closeTarget", targetId=self.target)
        del self.browser.pages[self.session]
