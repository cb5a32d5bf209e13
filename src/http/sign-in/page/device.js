// The page of /sign-in/device, on which the person who is signed in lets a machine act as them. The address may bring the
// code in its fragment, which only fills it in: the person sees which machine asks before anything happens.

const byId = (id) => document.getElementById(id);
const [message, warning, form, label, input] = ["message", "warning", "form", "label", "code"].map(byId);
const [submit, allow, deny, enter] = ["submit", "allow", "deny", "enter"].map(byId);

const NOT_KNOWN =
  "No machine waits with this code: it may be mistyped, used already, or more than 15 minutes old.";

input.value = /^#[A-Z-]{1,20}$/.test(location.hash) ? location.hash.slice(1) : "";
history.replaceState(null, "", location.pathname);

let person = "";
/** Id of the person whom the page has named together with the machine: nobody else decides. */
let userId = "";

const nameOf = ({ name, email, organization }) => `${name} (${email}) in ${organization}`;

const show = (text, problem = "") => {
  message.textContent = text;
  warning.textContent = problem;
};

/** Shows the controls that are named, and no others. */
function offer(...shown) {
  form.hidden = false;
  for (const each of [label, submit, allow, deny, enter]) each.hidden = !shown.includes(each);
}

async function post(path, body) {
  const res = await fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { ok: res.ok, status: res.status, body: await res.json() };
}

function askForCode(problem = "") {
  offer(label, submit);
  show(`You are signed in as ${person}. Type the code that the machine shows.`, problem);
  input.focus();
}

function refused({ status, body }) {
  if (status === 401) return begin();
  if (body.code === "failed_precondition") return begin(body.message);
  askForCode(status === 404 ? NOT_KNOWN : body.message);
}

async function begin(problem = "") {
  const { ok, body } = await post("person", {});
  const signedIn = ok ? body.signedIn : undefined;
  if (signedIn) {
    person = nameOf(signedIn);
    return askForCode(problem);
  }
  const code = input.value === "" ? "" : `#${input.value}`;
  // By this tab and not by the address, which would tell the server and its log the code.
  sessionStorage.setItem("next", location.pathname + code);
  offer(enter);
  show("Sign in, and then say whether the machine may act as you.", ok ? problem : body.message);
}

async function nameMachine() {
  const answer = await post("device/request", { code: input.value });
  if (!answer.ok) return refused(answer);
  const { machine, address, askedAt } = answer.body;
  // As the machine shows it, however it was typed.
  input.value = input.value
    .toUpperCase()
    .replace(/[^A-Z]/g, "")
    .replace(/^.{4}/, "$&-");
  // Another tab may have signed in somebody else since this page was opened.
  person = nameOf(answer.body.person);
  userId = answer.body.person.userId;
  offer(allow, deny);
  show(
    `A machine that calls itself \u201c${machine}\u201d, at the address ${address}, asked at ` +
      `${new Date(askedAt).toLocaleTimeString()} to act as ${person}, with all your rights, for 30 days.`,
    `Log it in only if you have just started this yourself, and it shows the code ${input.value}.`,
  );
}

async function decide(isAllowed) {
  const answer = await post("device/decide", { code: input.value, allow: isAllowed, userId });
  if (!answer.ok) return refused(answer);
  offer();
  show(
    isAllowed
      ? "The machine is logged in. You can close this page; its token is among your personal access tokens."
      : "The machine was refused. You can close this page.",
  );
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (!submit.hidden) nameMachine();
});
allow.addEventListener("click", () => decide(true));
deny.addEventListener("click", () => decide(false));

begin();
