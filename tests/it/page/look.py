#!/usr/bin/env python3
"""Opens a report in headless Chromium as a person would, on a phone and on a desktop, light and dark.

    look.py PAGE.html FOLDER [CHROMIUM]

Pictures go into FOLDER. Fails (exit code 1, one line each) on whatever the console calls an error, on any request that is not for the page
itself, on a page wider than its window, and on controls that do nothing. Needs nothing but Python and a Chromium: it speaks the DevTools
protocol over a pipe.
"""

import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import sys
import tempfile
import time

WAIT = 60.0


class Browser:
    def __init__(self, program):
        self.profile = tempfile.mkdtemp(prefix="toposcope-look-")
        to_read, self.write = os.pipe()
        self.read, to_write = os.pipe()
        words = [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                 "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
                 "--remote-debugging-pipe", f"--user-data-dir={self.profile}", "about:blank"]
        shell = ["sh", "-c", f'exec "$@" 3<&{to_read} 4>&{to_write}', "sh", *words]
        self.process = subprocess.Popen(shell, pass_fds=(to_read, to_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.rest, self.number, self.events, self.session = b"", 0, [], None

    def message(self, until):
        while b"\0" not in self.rest:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.read], [], [], left)[0]:
                raise TimeoutError("the browser did not answer")
            part = os.read(self.read, 1 << 20)
            if not part:
                raise EOFError("the browser ended")
            self.rest += part
        one, self.rest = self.rest.split(b"\0", 1)
        return json.loads(one)

    def call(self, method, **parameters):
        self.number += 1
        ask = {"id": self.number, "method": method, "params": parameters}
        if self.session and not method.startswith(("Target.", "Browser.")):
            ask["sessionId"] = self.session
        data = json.dumps(ask).encode() + b"\0"
        while data:
            data = data[os.write(self.write, data):]
        until = time.monotonic() + WAIT
        while True:
            answer = self.message(until)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def value(self, expression):
        got = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in got:
            raise RuntimeError(f"{expression}: {got['exceptionDetails']}")
        return got["result"].get("value")

    def settle(self):
        """Two frames later."""
        self.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def end(self):
        try:
            self.call("Browser.close")
            self.process.wait(10)
        except Exception:
            self.process.kill()
        shutil.rmtree(self.profile, ignore_errors=True)


def faults_of(events, page):
    faults = []
    for event in events:
        method, told = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            faults.append(f"exception: {told['exceptionDetails'].get('exception', {}).get('description', told)}")
        elif method == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
            faults.append(f"console: {told['args']}")
        elif method == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
            faults.append(f"log: {told['entry']['text']}")
        elif method == "Network.requestWillBeSent":
            url = told["request"]["url"]
            if url.split("#")[0] != page and not url.startswith("blob:null/"):
                faults.append(f"request: {url[:200]}")
    return faults


def look(browser, page, folder):
    faults = []
    target = browser.call("Target.createTarget", url="about:blank")["targetId"]
    browser.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    for domain in ("Page", "Runtime", "Log", "Network"):
        browser.call(f"{domain}.enable")
    browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))

    def expect(what, true):
        if not true:
            faults.append(what)

    for width, height, mobile in ((390, 844, True), (1440, 900, False)):
        for scheme in ("light", "dark"):
            name = f"{width}-{scheme}"
            browser.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2 if mobile else 1, mobile=mobile)
            browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            begun = time.monotonic()
            browser.call("Page.navigate", url=page)
            until = time.monotonic() + WAIT
            while browser.value("document.readyState") != "complete":
                if time.monotonic() > until:
                    raise TimeoutError(f"{name}: the page does not load")
                time.sleep(0.05)
            browser.settle()
            print(f"{name}: loaded in {time.monotonic() - begun:.2f} s")
            wide = browser.value("document.documentElement.scrollWidth")
            expect(f"{name}: the page is {wide} wide", wide <= width)
            shown = browser.value("document.querySelector('#plot') !== null && !document.querySelector('.scripted').hidden")
            if shown:
                faults.extend(f"{name}: {fault}" for fault in use(browser, mobile))
            shot = browser.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
            (folder / f"{name}.png").write_bytes(base64.b64decode(shot["data"]))
    pdf = base64.b64decode(browser.call("Page.printToPDF", printBackground=True)["data"])
    (folder / "print.pdf").write_bytes(pdf)
    expect("nothing is printed", len(pdf) > 5000)
    browser.value("document.getElementById('save').click()")
    until, saved = time.monotonic() + WAIT, None
    while saved is None and time.monotonic() < until:
        saved = next((file for file in folder.glob("*-numbers.json")), None)
        time.sleep(0.1)
    expect("the numbers are not saved", saved is not None)
    if saved is not None:
        same = browser.value("document.getElementById('data').textContent")
        expect("the numbers that were saved are others", json.loads(saved.read_text()) == json.loads(same))
    faults.extend(faults_of(browser.events, page))
    return faults


def use(browser, mobile):
    faults = []
    cell = lambda: browser.value("document.getElementById('cell').textContent")
    if "rank" not in cell():
        faults.append(f"no pair is told: {cell()!r}")
    box = browser.value("(() => { const b = document.getElementById('plot').getBoundingClientRect(); scrollTo(0, scrollY + b.top - 60); "
                        "const c = document.getElementById('plot').getBoundingClientRect(); return [c.left, c.top, c.width, c.height]; })()")
    told = set()
    for share in (0.3, 0.55, 0.8):
        x, y = box[0] + box[2] * share, box[1] + box[3] * (1.1 - share)
        if mobile:
            browser.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
            browser.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        else:
            browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        browser.settle()
        told.add(cell())
    if len(told) < 3:
        faults.append(f"the pointer does not change the pair: {told}")
    browser.value("document.getElementById('plot').focus()")
    before = cell()
    begun = time.monotonic()
    for key in ("Home", "ArrowRight", "ArrowDown", "+", "-", "n"):
        code = {"+": 187, "-": 189, "n": 78, "Home": 36, "ArrowRight": 39, "ArrowDown": 40}[key]
        text = {"text": key} if len(key) == 1 else {}
        browser.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **text)
        browser.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)
        if key == "ArrowRight" and "rank 0 (" not in cell():
            faults.append(f"keys do not move the pair: {cell()!r}")
    browser.settle()
    each = (time.monotonic() - begun) / 6
    print(f"  a key takes {each * 1000:.0f} ms; {before[:60]!r} -> {cell()[:60]!r}")
    if each > 1.5:
        faults.append(f"a key takes {each:.1f} s")
    legends = set()
    metrics = browser.value("[...document.getElementById('metric').options].map((option) => option.value)")
    for metric in metrics:
        browser.value(f"(() => {{ const s = document.getElementById('metric'); s.value = '{metric}'; s.dispatchEvent(new Event('change')); }})()")
        browser.settle()
        legends.add((metric, browser.value("document.getElementById('legend').textContent")))
    if len(legends) != len(metrics) or len({text for _, text in legends}) < min(2, len(metrics)):
        faults.append(f"the metrics look alike: {legends}")
    browser.value("(() => { const s = document.getElementById('metric'); s.value = 'bandwidth'; s.dispatchEvent(new Event('change')); scrollTo(0, 0); })()")
    browser.settle()
    return faults


def main():
    page, folder = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    program = sys.argv[3] if len(sys.argv) > 3 else next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)
    if program is None:
        print("no Chromium: install one (apt-get install chromium)")
        return 2
    folder.mkdir(parents=True, exist_ok=True)
    browser = Browser(program)
    try:
        faults = look(browser, page.as_uri(), folder)
    finally:
        browser.end()
    for fault in faults:
        print(f"FAULT {fault}")
    if not faults:
        print("all is well")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
