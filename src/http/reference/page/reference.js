// Calls name the origin of this page, so that they can be pasted as they are.
for (const call of document.querySelectorAll("pre.call")) {
  call.textContent = call.textContent.replace("http://127.0.0.1:8080", location.origin);
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    // Only pages over HTTPS and of this machine may write to the clipboard; elsewhere the call is marked.
    getSelection()?.selectAllChildren(call);
    await navigator.clipboard?.writeText(call.textContent);
  });
  call.before(button);
}

const field = document.querySelector("#search");
if (field) {
  const items = [...document.querySelectorAll("li[data-words]")];
  const filter = () => {
    const words = field.value
      .toLowerCase()
      .split(/\s+/)
      .filter((word) => word !== "");
    let count = 0;
    for (const item of items) {
      item.hidden = !words.every((word) => item.dataset.words.includes(word));
      if (!item.hidden) count += 1;
    }
    for (const section of document.querySelectorAll("main > section")) {
      section.hidden = !section.querySelector("li:not([hidden])");
    }
    document.querySelector("#count").textContent = words.length === 0 ? "" : `${count} found`;
  };
  field.value = new URLSearchParams(location.search).get("q") ?? "";
  field.addEventListener("input", filter);
  filter();
}
