"""Tests the files in `packaging/` with the programs that read them: promtool, Prometheus, systemd,
linerate.

    LINERATE_BIN=target/release/linerate python3 -B -m unittest discover -s packaging/tests
"""

import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
import tomllib
import unittest
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
# In CI every test must run.
IS_CI = "CI" in os.environ
BINARY = Path(os.environ.get("LINERATE_BIN", ROOT / "target" / "release" / "linerate")).resolve()

# Generous because the machine may be small and busy; only a failure takes this long.
PATIENCE_S = 60

# Panels that stay empty here: no application has chosen a code, and no client reconnected.
EMPTY = {"sum by (code) (rate(linerate_disconnects_total"}


def board_queries():
    """Returns the expressions of the dashboard, with variables filled in as by Grafana."""
    board = json.loads((PACKAGING / "grafana" / "linerate.json").read_text())
    for panel in board["panels"]:
        for target in panel["targets"]:
            expression = target["expr"].replace("$instance", ".*")
            yield panel["title"], expression.replace("$__rate_interval", "30s")


def metrics_named(text):
    return set(re.findall(r"\b(?:linerate|process)_[a-z_]+\b", text))


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def until(ask, what):
    """Calls `ask` until the result is truthy."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        answer = ask()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise TimeoutError(f"timed out waiting for {what}")
        time.sleep(0.1)


def get(url):
    try:
        with urllib.request.urlopen(url, timeout=10) as response:
            return response.read().decode()
    except urllib.error.HTTPError as error:
        return error.read().decode()
    except OSError:
        return ""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Server:
    """`linerate serve`, with one of each event that it counts."""

    def __init__(self):
        command = [BINARY, "serve", "--listen", "127.0.0.1:0", "--set", "channel.history_size=10"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        lines = iter(self.process.stdout.readline, "")
        found = (re.search(r"http://(127\.0\.0\.1:\d+)", line) for line in lines)
        self.address = next(match[1] for match in found if match)
        self.reader = None

    def use(self):
        """Subscribes permanently over an event stream, and does everything else once."""
        self.reader = urllib.request.urlopen(f"http://{self.address}/sse?channel=news", timeout=10)
        self.work()

    def work(self):
        """Publishes, and subscribes briefly with commands."""
        self.post("/api/publish", json.dumps({"channel": "news", "data": {"n": 1}}))
        connect = json.dumps({"id": 1, "connect": {}})
        subscribe = json.dumps({"id": 2, "subscribe": {"channel": "news"}})
        self.post("/connection/http_stream", f"{connect}\n{subscribe}")

    def post(self, path, body):
        request = urllib.request.Request(
            f"http://{self.address}{path}", data=body.encode(), headers={"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=10) as response:
            response.readline()

    def metrics(self):
        return get(f"http://{self.address}/metrics")

    def stop(self):
        if self.reader:
            self.reader.close()
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Prometheus:
    """Prometheus with the configuration of `packaging/prometheus`, scraping every second."""

    def __init__(self, target):
        self.directory = tempfile.TemporaryDirectory()
        directory = Path(self.directory.name)
        configuration = (PACKAGING / "prometheus" / "prometheus.yml").read_text()
        for before, after in [("127.0.0.1:9090", target), ("interval: 15s", "interval: 1s")]:
            assert before in configuration, before
            configuration = configuration.replace(before, after)
        (directory / "prometheus.yml").write_text(configuration)
        shutil.copy(PACKAGING / "prometheus" / "alerts.yml", directory)
        self.url = f"http://127.0.0.1:{free_port()}"
        command = ["prometheus", f"--config.file={directory}/prometheus.yml", f"--storage.tsdb.path={directory}/data"]
        command += [f"--web.listen-address={self.url.removeprefix('http://')}", "--log.level=error"]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        until(lambda: "Ready" in get(f"{self.url}/-/ready"), "Prometheus")

    def query(self, expression):
        """Returns the current result of an expression; fails if it is invalid."""
        reply = json.loads(get(f"{self.url}/api/v1/query?{urllib.parse.urlencode({'query': expression})}"))
        assert reply["status"] == "success", f"{expression}: {reply.get('error')}"
        return reply["data"]["result"]

    def rules(self):
        groups = json.loads(get(f"{self.url}/api/v1/rules"))["data"]["groups"]
        return [rule for group in groups for rule in group["rules"]]

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.directory.cleanup()


class Monitoring(unittest.TestCase):
    """Prometheus and Grafana."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.stop)
        cls.server.use()

    def test_promtool_accepts_configuration_rules_and_their_tests(self):
        for command in [("check", "config", "prometheus.yml"), ("test", "rules", "alerts.test.yml")]:
            result = run("promtool", *command[:2], PACKAGING / "prometheus" / command[2])
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_promtool_finds_no_error_in_the_metrics(self):
        text = self.server.metrics()
        result = subprocess.run(
            ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        # Exit status 3 is for matters of style; names without a unit are counts.
        self.assertIn(result.returncode, [0, 3], result.stderr)
        self.assertNotIn("error while linting", result.stderr)

    def test_every_alert_has_a_test_in_which_it_fires(self):
        alerts = re.findall(r"alert: (\w+)", (PACKAGING / "prometheus" / "alerts.yml").read_text())
        tests = (PACKAGING / "prometheus" / "alerts.test.yml").read_text()
        fired = re.findall(r"alertname: (\w+)\n +eval_time: \w+\n +exp_alerts", tests)
        self.assertEqual(sorted(alerts), sorted(fired))

    def test_every_metric_in_the_dashboard_and_the_alerts_is_served(self):
        served = metrics_named(self.server.metrics())
        # The TYPE line of a counter has its name without the suffix.
        served |= {f"{name}_total" for name in served}
        for file in ["grafana/linerate.json", "prometheus/alerts.yml", "prometheus/alerts.test.yml"]:
            named = metrics_named((PACKAGING / file).read_text())
            self.assertGreater(len(named), 5)
            self.assertEqual(named - served - {"linerate_disconnects_total"}, set(), file)

    def test_every_query_of_the_dashboard_returns_data(self):
        prometheus = Prometheus(self.server.address)
        self.addCleanup(prometheus.stop)
        for title, expression in board_queries():
            with self.subTest(panel=title):
                if any(expression.startswith(empty) for empty in EMPTY):
                    self.assertEqual(prometheus.query(expression), [])
                    continue

                def answer(expression=expression):
                    self.server.work()
                    values = [float(sample["value"][1]) for sample in prometheus.query(expression)]
                    return any(value == value for value in values)  # 0 / 0 is NaN.

                until(answer, f"{title}: {expression}")
        rules = until(lambda: [rule for rule in prometheus.rules() if rule["health"] != "unknown"], "the rules")
        self.assertEqual({rule["health"] for rule in rules}, {"ok"}, rules)


class Deployment(unittest.TestCase):
    """systemd and Docker."""

    @unittest.skipUnless(shutil.which("systemd-analyze") or IS_CI, "systemd-analyze is not installed")
    def test_systemd_accepts_the_unit(self):
        unit = (PACKAGING / "systemd" / "linerate.service").read_text()
        self.assertIn("/usr/bin/linerate", unit)
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "linerate.service"
            path.write_text(unit.replace("/usr/bin/linerate", str(BINARY)))
            result = run("systemd-analyze", "verify", "--man=no", path)
        complaints = [line for line in result.stderr.splitlines() if "linerate" in line]
        self.assertEqual((result.returncode, complaints), (0, []), result.stderr)

    def test_a_reload_starts_what_the_start_starts_and_the_running_process_lets_it_take_over(self):
        unit = (PACKAGING / "systemd" / "linerate.service").read_text()
        start = re.search(r"^ExecStart=(.*)$", unit, re.M)[1]
        self.assertIn(f"ExecReload={start} --takeover --detach\n", unit)
        # Otherwise the reload has no NOTIFY_SOCKET, and systemd ignores the new process.
        self.assertIn("NotifyAccess=exec\n", unit)
        directory = re.search(r"^RuntimeDirectory=(.*)$", unit, re.M)[1]
        socket_path = re.search(r"^Environment=LINERATE_SERVER_TAKEOVER_SOCKET=(.*)$", unit, re.M)[1]
        self.assertEqual(str(Path(socket_path).parent), f"/run/{directory}")
        result = subprocess.run(
            [BINARY, "config", "check"],
            env={"LINERATE_SERVER_TAKEOVER_SOCKET": socket_path},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_systemd_waits_longer_than_a_drain_takes(self):
        unit = (PACKAGING / "systemd" / "linerate.service").read_text()
        drain = tomllib.loads(run(BINARY, "config", "default").stdout)["server"]["drain"]
        longest = drain["delay_s"] + drain["window_s"] + drain["timeout_s"]
        self.assertGreater(int(re.search(r"TimeoutStopSec=(\d+)", unit)[1]), longest)

    def test_the_image_is_built_with_the_oldest_supported_compiler(self):
        manifest = tomllib.loads((ROOT / "Cargo.toml").read_text())
        oldest = manifest["workspace"]["package"]["rust-version"]
        dockerfile = (PACKAGING / "docker" / "Dockerfile").read_text()
        self.assertIn(f"FROM rust:{oldest}-", dockerfile)

    def test_the_image_starts_with_arguments_that_the_binary_accepts(self):
        dockerfile = (PACKAGING / "docker" / "Dockerfile").read_text()
        variables = dict(re.findall(r"(LINERATE_\w+)=(\S+)", dockerfile))
        self.assertGreater(len(variables), 2)
        # When it listens on all addresses it requires a key, as the Dockerfile says.
        key = {"LINERATE_AUTH_ANONYMOUS": "true"}
        for environment, is_ok in [({**variables, **key}, True), (variables, False)]:
            result = subprocess.run(
                [BINARY, "config", "check"], env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
            )
            self.assertEqual(result.returncode == 0, is_ok, result.stdout + result.stderr)


if __name__ == "__main__":
    unittest.main()
