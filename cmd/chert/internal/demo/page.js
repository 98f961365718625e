"use strict";
// Without script the page is a list of lines; the buttons come with it.
const show = (out, text) => { out.hidden = false; out.textContent = text; };
// What a script may see of these fields is worth a look.
const fields = ["allow", "www-authenticate", "retry-after", "ratelimit", "content-type", "content-encoding", "x-request-id"];

async function ask(out, path, options) {
  const begin = performance.now();
  try {
    const res = await fetch(path, { cache: "no-store", ...options });
    const body = await res.text();
    const took = (performance.now() - begin).toFixed(0);
    const head = fields.filter(f => res.headers.has(f)).map(f => f + ": " + res.headers.get(f));
    show(out, [`${res.status} ${res.statusText}, ${took} ms`, ...head, "", body.slice(0, 4000)].join("\n"));
  } catch (e) {
    show(out, "no answer: " + e.message);
  }
}

for (const b of document.querySelectorAll(".try")) {
  b.hidden = false;
  b.addEventListener("click", async () => {
    const { method, path, auth, body } = b.dataset;
    b.disabled = true;
    await ask(b.closest("li").querySelector(".answer"), path, {
      method, headers: auth ? { Authorization: "Bearer " + auth } : {}, body: body || undefined,
    });
    b.disabled = false;
  });
}

// There is no clipboard for pages that came without TLS, but from this machine.
if (navigator.clipboard) {
  for (const b of document.querySelectorAll(".copy")) {
    b.hidden = false;
    b.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(b.closest("li").querySelector("code").textContent);
        b.textContent = "Copied";
      } catch {
        b.textContent = "Not allowed";
      }
      setTimeout(() => { b.textContent = "Copy"; }, 1500);
    });
  }
}

const clock = document.getElementById("clock"), button = document.getElementById("clock-button");
let events;
function stop(text) {
  if (events) events.close();
  events = undefined;
  clock.textContent = text;
  button.textContent = "Start";
  button.setAttribute("aria-pressed", "false");
}
button.hidden = false;
button.addEventListener("click", () => {
  if (events) return stop("stopped");
  events = new EventSource("/clock");
  events.onmessage = e => { clock.textContent = e.data; };
  events.onerror = () => stop("the stream has ended");
  button.textContent = "Stop";
  button.setAttribute("aria-pressed", "true");
});

// Lines of the chat and of the feed, the last at the end.
const byId = id => document.getElementById(id);
function say(id, text) {
  const out = byId(id);
  out.hidden = false;
  out.textContent = (out.textContent + text + "\n").slice(-4000);
  out.scrollTop = out.scrollHeight;
}
function sender(id, send) {
  const text = byId(id + "-text"), button = byId(id + "-send");
  const go = () => { if (text.value) send(text.value); text.value = ""; };
  button.hidden = false;
  button.addEventListener("click", go);
  text.addEventListener("keydown", e => { if (e.key === "Enter") go(); });
}

let chat;
function connect() {
  chat = new WebSocket("/chat");
  chat.onopen = () => { byId("chat-state").textContent = "connected"; };
  chat.onmessage = e => say("chat", e.data);
  chat.onclose = () => {
    byId("chat-state").textContent = "not connected";
    setTimeout(connect, 1000 + 1000 * Math.random()); // not all at once
  };
}
sender("chat", text => chat.send(text));
sender("feed", text => fetch("/feed", { method: "POST", body: text }));
// Connections that are kept would delay the page's load event.
window.addEventListener("load", () => {
  connect();
  const feed = new EventSource("/feed");
  feed.onopen = () => { byId("feed-state").textContent = "connected"; };
  feed.onmessage = e => say("feed", e.data);
  feed.onerror = () => { byId("feed-state").textContent = "not connected"; }; // it connects again by itself
});

document.getElementById("file").addEventListener("change", e => {
  const file = e.target.files[0];
  if (file) ask(document.getElementById("uploaded"), "/upload", { method: "POST", body: file });
});
