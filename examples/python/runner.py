"""A runner over plain HTTP and JSON, with nothing but Python's standard library.

    EXCHANGE_TOKEN=cr_exc_... python3 examples/python/runner.py [address]

It clones repositories, runs tasks and collects outputs, one action after another.
What a whole runner does besides is in docs/runners.md.
"""

import base64, json, os, signal, subprocess, sys, tempfile, threading, urllib.request

ADDRESS = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"
EXCHANGE_TOKEN = os.environ.pop("EXCHANGE_TOKEN")  # Once it is out, no program sees it.
GIT = {"GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": "https:ssh", **os.environ}


def call(token, operation, request):
    url = f"{ADDRESS}/api/runner.v1.WorkService/{operation}"
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    sent = urllib.request.Request(url, json.dumps(request).encode(), headers)
    with urllib.request.urlopen(sent, timeout=60) as answer:
        return json.load(answer)


class Lease:
    """The hold on a piece of work; a thread renews it, and ends what runs when it is lost."""

    def __init__(self, token, work):
        self.token, self.name = token, {"leaseId": work["leaseId"], "fence": work["fence"]}
        self.over, self.process = threading.Event(), None
        threading.Thread(target=self.renew, daemon=True).start()

    def renew(self):
        while not self.over.wait(5):  # A lease holds for 30 seconds by default.
            try:
                self.tell("RenewLease")
            except OSError:
                self.end()

    def tell(self, operation, **more):
        if call(self.token, operation, {**self.name, **more}).get("stop"):
            self.end()

    def end(self):
        self.over.set()
        if self.process and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)

    def run(self, program, folder, env):
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "start_new_session": True}
        self.process = subprocess.Popen(program, cwd=folder, env=env, **pipes)
        printed, _ = self.process.communicate()
        if self.process.returncode != 0 or self.over.is_set():
            raise RuntimeError(f"{program[0]} ended with {self.process.returncode}")
        return printed


def carry_out(lease, policies, action, folder):
    unkept = [name for name, policy in policies.items() if policy and name != "agentPolicy"]
    if unkept:
        raise RuntimeError(f"this runner cannot keep {', '.join(unkept)}")
    content = action["environment"]["spec"].get("content", {})
    for spec in content.get("initializer", {}).get("specs", []):
        source = spec.get("git")
        if not source or source["cloneTarget"]:
            raise RuntimeError("this runner clones default branches only")
        lease.run(["git", "clone", "--quiet", "--", source["remoteUri"], "tree"], folder, GIT)
        folder = os.path.join(folder, "tree")
    env = {"PATH": os.environ["PATH"], "HOME": folder, **action["variables"]}
    for index, step in enumerate(action["steps"]):
        lease.tell("ReportProgress", steps=[{"stepIndex": index, "state": "STATE_RUNNING"}])
        outputs = {}
        if "task" in step:
            printed = lease.run(["sh", "-c", "--", step["task"]["command"]], folder, env)
            for offset in range(0, len(printed), 65536):
                data = base64.b64encode(printed[offset:offset + 65536]).decode()
                lease.tell("ReportProgress", logs=[{"stepIndex": index, "offset": offset, "data": data}])
        elif "report" in step:
            for output in step["report"]["outputs"]:
                printed = lease.run(["sh", "-c", "--", output["command"]], folder, env)
                outputs[output["key"]] = base64.b64encode(printed).decode()
        else:
            raise RuntimeError("this runner knows tasks and reports only")
        done = {"stepIndex": index, "state": "STATE_DONE", "outputs": outputs}
        lease.tell("ReportProgress", steps=[done])


def work_on(token, work):
    lease, end = Lease(token, work), {"outcome": "OUTCOME_DONE"}
    try:
        with tempfile.TemporaryDirectory() as folder:
            carry_out(lease, work["policies"], work["action"], folder)
    except RuntimeError as error:
        failure = {"reason": "work_failed", "message": str(error)}
        end = {"outcome": "OUTCOME_FAILED", "failure": failure}
    finally:
        stopped = lease.over.is_set()
        lease.over.set()
    lease.tell("FinishWork", **({"outcome": "OUTCOME_STOPPED"} if stopped else end))


offer = {"displayName": "Python", "description": "A folder on the runner's machine"}
token = call(EXCHANGE_TOKEN, "Register", {"environmentClass": offer})["token"]
print("ready", flush=True)
while True:
    for work in call(token, "LeaseWork", {"maxLeases": 1, "kinds": ["WORK_KIND_ACTION"]})["works"]:
        try:
            work_on(token, work)
        except OSError as error:  # Nobody takes word of it any more: it goes to another.
            print("dropped:", error, flush=True)
