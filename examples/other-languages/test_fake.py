"""Tests of an application in Python. ./run runs them."""
import json
import subprocess
import sys
import time
import unittest
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

from fake import Fake, direct


class FakeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.fake = Fake()
        cls.addClassCleanup(cls.fake.stop)

    def setUp(self):
        self.fake.reset()

    def tearDown(self):
        print(self.fake.story())  # unittest --buffer shows it if the test failed

    def call(self, method, path, body=None):
        headers = {"Authorization": f"Bearer {self.fake.key}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        with direct.open(urllib.request.Request(self.fake.base_url + path, data, headers, method=method)) as answer:
            return json.load(answer)

    def test_an_agent_answers_as_scripted(self):
        agent = self.call("POST", "/v1/agents", {})["agent_id"]
        self.assertEqual(agent, "agent_000001", "each test begins with an empty fake")
        self.fake.control("POST", "/replies", {"match": {"text_containing": "order"}, "replies": [{"text": "It ships today."}]})
        reply = self.call("POST", f"/v1/agents/{agent}/messages", {"text": "Where is my order?"})
        self.assertEqual(reply["reply_text"], "It ships today.")
        calls = self.fake.control("GET", "/calls?timeout=5s&text_containing=order")["calls"]
        self.assertEqual(calls[0]["trace_id"], reply["trace_id"])

    def test_a_limit_that_is_used_up_opens_a_day_later(self):
        self.assertEqual(self.fake.control("GET", "/clock")["advanced"], "0s", "a reset takes the clock back")
        self.fake.control("POST", "/keys/key_000001/limits/key_day/exhaust")
        with self.assertRaises(urllib.error.HTTPError) as refused:
            self.call("POST", "/v1/agents", {})
        self.assertEqual(refused.exception.code, 429)
        refused.exception.close()
        self.fake.control("POST", "/clock", {"duration": "24h"})
        self.assertEqual(self.call("POST", "/v1/agents", {})["status"], "active")

    def test_a_reset_lets_a_call_go_that_hangs(self):
        self.fake.control("POST", "/faults", {"fault": {"kind": "hang"}})
        with ThreadPoolExecutor() as threads:
            hanging = threads.submit(self.call, "GET", "/v1/status")
            self.fake.control("GET", "/calls?timeout=5s")
            self.fake.reset()
            self.assertIsInstance(hanging.exception(), OSError)
        self.assertTrue(self.call("GET", "/v1/status")["ok"])

    def test_the_story_of_a_test_says_why(self):
        with self.assertRaises(urllib.error.HTTPError) as refused:
            self.call("POST", "/v1/agents", {"customer_ref": 5})
        refused.exception.close()
        self.assertRegex(self.fake.story(), "^trace_[0-9]+ POST /v1/agents 400 400: customer_ref: must be ")

    def test_the_fake_ends_with_the_process_that_started_it(self):
        killed = "import os; from fake import Fake; print(Fake().base_url, flush=True); os._exit(9)"
        base_url = subprocess.run([sys.executable, "-c", killed], stdout=subprocess.PIPE, text=True).stdout.strip()
        with self.assertRaises(OSError):
            for _ in range(1000):  # as it ends within 10 s
                direct.open(base_url + "/healthz").close()
                time.sleep(0.01)

    def test_a_mistake_is_named(self):
        with self.assertRaisesRegex(ValueError, "POST /clock: 400 duration: must be "):
            self.fake.control("POST", "/clock", {"duration": "a day"})


if __name__ == "__main__":
    unittest.main()
