"""The fake for tests in Python 3, with the standard library only.

    fake = Fake()      # starts agentmessaging-fake on a free port, and waits until it serves
    fake.reset()       # before each test: empty, no faults, the clock back, calls that hang let go
    fake.stop()
"""
import json
import os
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # no proxy of the environment


class Fake:
    def __init__(self, *flags, program="agentmessaging-fake"):
        self.folder = tempfile.TemporaryDirectory()
        ready = os.path.join(self.folder.name, "ready")  # once it is there, it is whole
        arguments = ["--addr=127.0.0.1:0", "--log=off", "--json", "--until-eof", "--ready-file", ready, *flags]
        self.process = subprocess.Popen([program, *arguments], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        while not os.path.exists(ready):
            if self.process.poll() is not None:
                raise RuntimeError("the fake has ended; standard error says why")
            time.sleep(0.01)
        with open(ready, encoding="utf-8") as file:
            facts = json.load(file)
        self.base_url, self.key = facts["base_url"], facts["api_key"]

    def control(self, method, path, body=None):
        """Calls the control interface: control("POST", "/clock", {"duration": "24h"})."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base_url + "/_fake/v1" + path, data, method=method)
        if data is not None:
            request.add_header("Content-Type", "application/json")
        try:
            with direct.open(request) as answer:
                text = answer.read()
        except urllib.error.HTTPError as refused:
            raise ValueError(f"{method} {path}: {refused.code} {json.load(refused)['reason']}") from None
        return json.loads(text) if text else None

    def reset(self):
        self.control("POST", "/reset")

    def story(self):
        """A line for each call: print it in tearDown, and unittest --buffer or pytest shows it if a test fails."""
        calls = self.control("GET", "/calls")["calls"]
        return "\n".join(f"{c['trace_id']} {c['method']} {c['path']} {c['sent']['status']} {c.get('why', '')}" for c in calls)

    def stop(self):
        self.process.communicate(timeout=10)  # it ends with its standard input, and also if this process is killed
        self.folder.cleanup()
