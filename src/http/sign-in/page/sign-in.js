// The page of /sign-in. A link brings its secret in the fragment, which no server and no log sees; it is posted only
// after a click of the person whom the page has named.

const byId = (id) => document.getElementById(id);
const [message, warning, form, label, input] = ["message", "warning", "form", "label", "token"].map(byId);
const [submit, other, out, enter] = ["submit", "other", "out", "enter"].map(byId);

const NO_COOKIE =
  "You are not signed in: this browser keeps no secure cookie for a plain http address of this machine. Use another " +
  "browser, give the server TLS (--tls-cert), or use the command line: chartroom login.";
const NO_TLS =
  "This address is plain http, on which nobody can sign in: the server needs TLS. See docs/sign-in.md.";

let secret = location.hash.slice(1);
const asked = new URLSearchParams(location.search).get("next") ?? "";
// A page of this server: neither another host, nor this page again.
const next = /^\/(?![/\\]|sign-in)[\x21-\x7e]*$/.test(asked) ? asked : "/";
// Out of the address bar and the history, which keep it otherwise.
history.replaceState(null, "", location.pathname);

const show = (text, problem = "") => {
  message.textContent = text;
  warning.textContent = problem;
};
const nameOf = ({ name, email, organization, readOnly }) =>
  `${name} (${email}) in ${organization}${readOnly ? ", read-only" : ""}`;

async function post(path, body) {
  const res = await fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { ok: res.ok, body: await res.json() };
}

const call = (operation, body = {}) => post(`api/service.v1.${operation}`, body);

/** Shows what can be done: with the secret of a link, or by pasting a token. */
async function offer() {
  const { ok, body } = await post("sign-in/person", { secret });
  form.hidden = false;
  label.hidden = secret !== "";
  other.hidden = true;
  out.hidden = true;
  enter.hidden = true;
  submit.hidden = false;
  submit.textContent = "Sign in";
  if (!ok) {
    secret = "";
    label.hidden = false;
    show("Sign in with an access token, or with a new link.", body.message);
    return;
  }
  const { person, signedIn } = body;
  if (person) {
    const now = signedIn ? `You are signed in as ${nameOf(signedIn)}. ` : "";
    show(`${now}Sign in as ${nameOf(person)}?`);
    submit.textContent = signedIn ? `Sign in as ${person.name} instead` : `Sign in as ${person.name}`;
    return;
  }
  if (!signedIn) return show("Sign in with an access token.");
  show(`You are signed in as ${nameOf(signedIn)}.`);
  label.hidden = true;
  submit.hidden = true;
  other.hidden = false;
  out.hidden = false;
  enter.hidden = false;
  enter.href = next;
}

async function signIn() {
  const value = secret || input.value.trim();
  input.value = "";
  if (value === "") return;
  if (!secret) {
    // The person is named before anything happens with a token, too.
    secret = value;
    return offer();
  }
  const { ok, body } = await post("sign-in/session", { secret: value, replace: true });
  secret = "";
  if (!ok) {
    await offer();
    return show(message.textContent, body.message);
  }
  if (!(await call("UserService/GetAuthenticatedUser")).ok) {
    form.hidden = true;
    return show("", NO_COOKIE);
  }
  location.replace(next);
}

async function signOut() {
  const { body } = await call("UserService/ListSessions", { pagination: { pageSize: 100 } });
  const current = body.sessions?.find((session) => session.current);
  if (current) await call("UserService/RevokeSession", { sessionId: current.id });
  await offer();
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  signIn();
});
other.addEventListener("click", () => {
  label.hidden = false;
  submit.hidden = false;
  other.hidden = true;
  input.focus();
});
out.addEventListener("click", signOut);

if (location.protocol === "http:" && !location.hostname.endsWith("localhost")) show("", NO_TLS);
else offer();
