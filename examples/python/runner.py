"""A runner over HTTP and JSON: EXCHANGE_TOKEN=cr_exc_... python3 examples/python/runner.py [address]"""
import base64, json, os, signal, subprocess, sys, tempfile
from urllib.request import Request, urlopen

ADDRESS = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"
GIT = {"GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": "https:ssh", **os.environ, "EXCHANGE_TOKEN": ""}
PIPES = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "start_new_session": True}

def call(token, operation, request):
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    sent = Request(f"{ADDRESS}/api/runner.v1.WorkService/{operation}", json.dumps(request).encode(), headers)
    with urlopen(sent, timeout=60) as response:
        answer = json.load(response)
    if answer.get("stop"):
        raise InterruptedError("the service wants no more of this work")
    return answer

def run(tell, folder, env, *program):
    process, printed = subprocess.Popen(program, cwd=folder, env=env, **PIPES), None
    try:
        while printed is None:
            try:
                printed, _ = process.communicate(timeout=5)
            except subprocess.TimeoutExpired:
                tell("RenewLease")  # A lease holds for 30 seconds by default.
    finally:
        if printed is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if process.returncode != 0:
        raise RuntimeError(f"{program[0]} ended with {process.returncode}")
    return printed

def carry_out(tell, policies, action, folder):
    unkept = [name for name, policy in policies.items() if policy and name != "agentPolicy"]
    specs = action["environment"]["spec"].get("content", {}).get("initializer", {}).get("specs", [])
    if unkept or not all("git" in spec and not spec["git"]["cloneTarget"] for spec in specs):
        raise RuntimeError(f"this runner clones default branches only, and keeps no policies {unkept}")
    for spec in specs:
        run(tell, folder, GIT, "git", "clone", "--quiet", "--", spec["git"]["remoteUri"], "tree")
        folder = os.path.join(folder, "tree")
    shell = (folder, {"PATH": os.environ["PATH"], "HOME": folder, **action["variables"]}, "sh", "-c", "--")
    for index, step in enumerate(action["steps"]):
        if "task" not in step and "report" not in step:
            raise RuntimeError("this runner knows tasks and reports only")
        tell("ReportProgress", steps=[{"stepIndex": index, "state": "STATE_RUNNING"}])
        log = run(tell, *shell, step["task"]["command"]) if "task" in step else b""
        for offset in range(0, len(log), 65536):
            data = base64.b64encode(log[offset:offset + 65536]).decode()
            tell("ReportProgress", logs=[{"stepIndex": index, "offset": offset, "data": data}])
        asked = step.get("report", {}).get("outputs", [])
        printed = {output["key"]: run(tell, *shell, output["command"]) for output in asked}
        outputs = {key: base64.b64encode(value).decode() for key, value in printed.items()}
        tell("ReportProgress", steps=[{"stepIndex": index, "state": "STATE_DONE", "outputs": outputs}])

def work_on(token, work):
    lease, end = {"leaseId": work["leaseId"], "fence": work["fence"]}, {"outcome": "OUTCOME_DONE"}
    tell = lambda operation, **more: call(token, operation, {**lease, **more})
    try:
        with tempfile.TemporaryDirectory() as folder:
            carry_out(tell, work["policies"], work["action"], folder)
    except InterruptedError:
        end = {"outcome": "OUTCOME_STOPPED"}
    except RuntimeError as error:
        end = {"outcome": "OUTCOME_FAILED", "failure": {"reason": "work_failed", "message": str(error)}}
    tell("FinishWork", **end)

offer = {"displayName": "Python", "description": "A folder on the runner's machine"}
token = call(os.environ.pop("EXCHANGE_TOKEN"), "Register", {"environmentClass": offer})["token"]
print("ready", flush=True)
while True:
    for work in call(token, "LeaseWork", {"maxLeases": 1, "kinds": ["WORK_KIND_ACTION"]})["works"]:
        try:
            work_on(token, work)
        except OSError as error:  # The report was not accepted: another runner gets the work.
            print("dropped:", error, flush=True)
