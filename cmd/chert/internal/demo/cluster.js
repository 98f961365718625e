for (const card of document.querySelectorAll("section[data-at]")) {
  const at = card.dataset.at, out = card.querySelector("pre"), state = card.querySelector("[role=status]");
  const events = new EventSource(at + "/feed");
  events.onopen = () => { state.textContent = "connected"; };
  events.onerror = () => { state.textContent = "not connected"; };
  events.onmessage = e => { out.textContent = (out.textContent + e.data + "\n").slice(-4000); };
  events.addEventListener("gap", () => { out.textContent += "(some events are missing)\n"; });
  const text = card.querySelector("input");
  card.querySelector("form").addEventListener("submit", e => {
    e.preventDefault();
    fetch(at + "/feed", {method: "POST", body: text.value}).then(r => {
      if (!r.ok) state.textContent = "the event was not accepted";
    }, () => { state.textContent = "not connected"; });
    text.value = "";
  });
}
