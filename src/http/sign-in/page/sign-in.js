// The page of /sign-in. A link brings its secret in the fragment, which no server and no log sees; it is posted only
// after a click of the person whom the page has named.

const byId = (id) => document.getElementById(id);
const [message, warning, form, label, input] = ["message", "warning", "form", "label", "token"].map(byId);
const [submit, other, out, enter, buttons] = ["submit", "other", "out", "enter", "providers"].map(byId);

const NO_COOKIE =
  "You are not signed in: this browser keeps no secure cookie for a plain http address of this machine. Use another " +
  "browser, give the server TLS (--tls-cert), or use the command line: chartroom login --paste.";
const NO_TLS =
  "This address is plain http, on which nobody can sign in: the server needs TLS. See docs/sign-in.md.";

/** Why a provider's sign-in ended here, in words; the address names a word of these, and nothing else is shown. */
const PROBLEMS = {
  expired: "This sign-in was not begun in this browser, or more than 10 minutes ago: begin again.",
  provider_failed:
    "The sign-in provider did not answer as it must: try again, or ask the operator of this server.",
  provider_refused: "The sign-in provider did not let you in.",
  address_unverified: "The sign-in provider has not verified your mail address.",
  domain_not_allowed: "Your mail address is of a domain that may not sign in here.",
  address_taken: "There is an account with your mail address already: sign in to it as before.",
  no_account: "You have no account here: ask an administrator for one.",
  scim_only: "You have no account here: your organization adds people by itself.",
  no_role: "The sign-in provider names no role for you here.",
  not_member: "You are not a member of the organization any more, or are suspended.",
  blocked: "Your account is blocked.",
  signed_in: "Somebody else is signed in in this browser: sign out first.",
  no_tls:
    "This address is plain http, on which nobody can sign in: the server needs TLS. See docs/sign-in.md.",
};
const named = new URLSearchParams(location.search).get("problem") ?? "";
let problem = Object.hasOwn(PROBLEMS, named) ? PROBLEMS[named] : "";

let secret = location.hash.slice(1);
const asked = new URLSearchParams(location.search).get("next") ?? sessionStorage.getItem("next") ?? "";
// Of this tab alone, and once: a provider sends the browser back without it.
sessionStorage.removeItem("next");
// A page of this server: neither another host, nor this page again, but the one at which machines are logged in.
const isPage = /^\/(?![/\\]|sign-in)[\x21-\x7e]*$/.test(asked);
const next = isPage || /^\/sign-in\/device(?:#[A-Z-]{1,20})?$/.test(asked) ? asked : "/";
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

/** Tells the pages of the console in other tabs that the session may be another one by now. */
const tabs = new BroadcastChannel("chartroom-session");

/** The secret of the invite that led here; the page behind it joins by it. */
const [, inviteId] = /^\/organization\/join#([0-9a-fA-F-]{36})$/.exec(next) ?? [];

const INVITE_GONE =
  "This invite has ended, was used up, or was withdrawn: ask the person who sent it to you for another one.";

/** Says what an invite is for, and the ways in: those who have an account here, and those who have none. */
function offerInvite(invite, providers) {
  const own = providers.filter(({ id }) => invite.providerIds.includes(id));
  const others = providers.filter(({ id }) => !invite.providerIds.includes(id));
  offerProviders([...own, ...others], false);
  const names = own.map(({ name }) => name).join(" or ");
  const byProvider = names === "" ? "" : `Sign in with ${names}, which brings people in. `;
  const withAccount =
    "If you have an account on this server, sign in to it first, with an access token or a link. ";
  const without =
    "If you have none, ask the person who sent you the invite, or who runs this server, to make you one and send you " +
    "a sign-in link; then open the invite again.";
  show(`You are invited to join ${invite.organization}. ${byProvider}${withAccount}${without}`, problem);
  problem = "";
}

/** Shows what can be done: with the secret of a link, or by pasting a token. */
async function offer() {
  const { ok, body } = await post("sign-in/person", { secret });
  tabs.postMessage("changed");
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
  const { person, signedIn, providers } = body;
  offerProviders(person || signedIn ? [] : providers, false);
  if (person) {
    const now = signedIn ? `You are signed in as ${nameOf(signedIn)}. ` : "";
    show(`${now}Sign in as ${nameOf(person)}?`);
    // The same person in another of their organizations is somebody else to the server alone.
    const isSame = signedIn?.email === person.email && signedIn.organization !== person.organization;
    if (isSame) submit.textContent = `Sign in to ${person.organization}`;
    else submit.textContent = `Sign in as ${person.name}${signedIn ? " instead" : ""}`;
    return;
  }
  if (!signedIn && inviteId !== undefined) {
    const invite = await post("sign-in/invite", { inviteId });
    if (invite.ok) return offerInvite(invite.body, providers);
    problem ||= invite.body.code === "not_found" ? INVITE_GONE : invite.body.message;
  }
  const shown = problem;
  problem = "";
  if (!signedIn) return show("Sign in with an access token.", shown);
  others = providers;
  show(`You are signed in as ${nameOf(signedIn)}.`, shown);
  label.hidden = true;
  submit.hidden = true;
  other.hidden = false;
  out.hidden = false;
  enter.hidden = false;
  enter.href = next;
}

/** The providers for somebody else, while the page says who is signed in. */
let others = [];

/** @param replace whether the page has said whose session the new one takes the place of */
function offerProviders(providers, replace) {
  buttons.replaceChildren(
    ...providers.map(({ id, name }) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = `Sign in with ${name}`;
      button.addEventListener("click", async () => {
        const { ok, body } = await post(`sign-in/begin/${id}`, { replace });
        if (ok && body.url) {
          sessionStorage.setItem("next", next);
          location.assign(body.url);
        } else show(message.textContent, PROBLEMS[body.problem] ?? body.message);
      });
      return button;
    }),
  );
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
  tabs.postMessage("changed");
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
  offerProviders(others, true);
  input.focus();
});
out.addEventListener("click", signOut);

if (location.protocol === "http:" && !location.hostname.endsWith("localhost")) show("", NO_TLS);
else offer();
