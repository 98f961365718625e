"use strict";
// The live page: an event a second, drawn into tables whose rows are reused. All text goes through textContent.

const $ = id => document.getElementById(id);
const kept = 60; // seconds of history

// Formatting, as internal/interval does it for the terminal; no line ends before a unit.
const digits = x => x < 9.95 && !Number.isInteger(x) ? x.toFixed(1) : x.toFixed(0);
const number = n => n >= 1e6 ? digits(n / 1e6) + "M" : n >= 1e4 ? digits(n / 1e3) + "k" : digits(n);
const percent = x => (x * 100).toFixed(x > 0 && x < 0.0995 ? 1 : 0) + "\u00a0%";
function time(ns) {
  if (!ns) return "–";
  if (ns < 1e3) return ns.toFixed(0) + "\u00a0ns";
  if (ns < 1e6) return digits(ns / 1e3) + "\u00a0µs";
  if (ns < 1e9) return digits(ns / 1e6) + "\u00a0ms";
  return digits(ns / 1e9) + "\u00a0s";
}
function bytes(n) {
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (n < 1024) return (unit === "B" ? n.toFixed(0) : digits(n)) + "\u00a0" + unit;
    n /= 1024;
  }
  return digits(n) + "\u00a0TiB";
}
function span(seconds) {
  const d = Math.floor(seconds / 86400), h = Math.floor(seconds / 3600) % 24, m = Math.floor(seconds / 60) % 60;
  return d ? `${d} d ${h} h` : h ? `${h} h ${m} min` : m ? `${m} min` : `${Math.floor(seconds)} s`;
}
const listed = (rates, format) => rates.map(r => `${r.name} ${format(r.n)}`).join(", ");

function set(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// fill makes a table's rows those of data. make creates the cells of a row once, and update fills them.
function fill(body, data, make, update, none) {
  const columns = body.previousElementSibling.rows[0].cells.length;
  if (body.firstElementChild?.dataset.none && data.length) body.replaceChildren();
  while (body.rows.length > data.length) body.lastElementChild.remove();
  data.forEach((one, i) => {
    let row = body.rows[i];
    if (!row) {
      row = body.insertRow();
      make(row);
    }
    update(row.cells, one);
  });
  if (!data.length && !body.rows.length) {
    const row = body.insertRow(), cell = row.insertCell();
    row.dataset.none = "1";
    cell.colSpan = columns;
    cell.className = "none";
    cell.textContent = none;
  }
}

// cells returns a make for fill: "h" is the row's header, "H" a long one, "n" a number, "N" one that phones omit, "w" text that they omit,
// "t" long text, "l" a lane.
function cells(kinds, more) {
  return row => {
    for (const kind of kinds) {
      const cell = document.createElement("hH".includes(kind) ? "th" : "td");
      if ("hH".includes(kind)) cell.scope = "row";
      cell.className = { n: "n", N: "n wide", w: "wide", t: "long", H: "long", l: "lane" }[kind] || "";
      row.append(cell);
    }
    more?.(row);
  };
}

// A canvas as large as its element, in the device's pixels.
function paper(canvas) {
  const scale = devicePixelRatio || 1, w = canvas.clientWidth, h = canvas.clientHeight;
  if (canvas.width !== Math.round(w * scale)) canvas.width = Math.round(w * scale);
  if (canvas.height !== Math.round(h * scale)) canvas.height = Math.round(h * scale);
  const c = canvas.getContext("2d");
  c.setTransform(scale, 0, 0, scale, 0, 0);
  c.clearRect(0, 0, w, h);
  return [c, w, h];
}

function line(canvas, values, color) {
  const [c, w, h] = paper(canvas), top = Math.max(...values, 1e-9), step = w / (kept - 1), left = w - (values.length - 1) * step;
  c.beginPath();
  values.forEach((v, i) => c.lineTo(left + i * step, h - 2 - v / top * (h - 4)));
  c.strokeStyle = color("--inline");
  c.lineWidth = 1.5;
  c.stroke();
  c.lineTo(w, h);
  c.lineTo(left, h);
  c.fillStyle = color("--fill");
  c.fill();
}

// A lane has a column for each second: what ran on the loop below, what goroutines ran above, and a mark for a hand-over.
function lane(canvas, seconds, top, color) {
  const [c, w, h] = paper(canvas), step = w / kept;
  seconds.forEach((s, i) => {
    const x = w - (seconds.length - i) * step;
    let y = h;
    for (const way of ["inline", "direct", "pooled"]) {
      const high = s[way] / top * (h - 6);
      c.fillStyle = color("--" + way);
      c.fillRect(x, y - high, Math.max(step - 0.5, 1), high);
      y -= high;
    }
    if (s.handovers) {
      c.fillStyle = color("--handover");
      c.fillRect(x, 0, Math.max(step - 0.5, 2), 5);
    }
  });
}

const past = { since: "", rate: [], p99: [], open: [], running: [], loops: [] };

function remember(list, value) {
  list.push(value);
  if (list.length > kept) list.shift();
}

function record(r) {
  if (past.since !== r.since) { // another process
    for (const key of ["rate", "p99", "open", "running", "loops"]) past[key] = [];
    if (past.since) succeeded();
    past.since = r.since;
  }
  if (r.average) return; // of hours, not of a second
  remember(past.rate, r.requests);
  remember(past.p99, r.stages[0].p99);
  remember(past.open, r.conns.open);
  remember(past.running, r.running);
  r.loops.forEach(l => remember(past.loops[l.index] ||= [], l));
}

let said = "";
function found(list) {
  const kinds = list.map(f => f.kind + f.look).join();
  const ul = $("found");
  // Averages since the server began hide what has just begun, and show what is long over.
  if (latest.average) {
    const li = document.createElement("li");
    li.className = "soft";
    li.textContent = "measuring";
    ul.replaceChildren(li);
    said = "";
    return;
  }
  if (!list.length) {
    if (kinds !== said || ul.firstElementChild.textContent === "measuring") {
      const li = document.createElement("li");
      li.className = "soft";
      li.textContent = "nothing";
      ul.replaceChildren(li);
    }
  } else if (kinds !== said) {
    ul.replaceChildren(...list.map(f => {
      const li = document.createElement("li");
      li.dataset.kind = f.kind;
      li.append(document.createElement("span"));
      if (f.look) {
        const a = document.createElement("a");
        a.href = f.look;
        a.textContent = f.look;
        li.append(" – ", a);
      }
      return li;
    }));
  }
  list.forEach((f, i) => set(ul.children[i].firstChild, f.text));
  // Announced when something begins or ends, not for each change of a number.
  if (kinds !== said) set($("said"), list.length ? "Stands out: " + list.map(f => f.text).join("; ") : "Nothing stands out any more");
  said = kinds;
}

const byClass = counts => listed(counts.map((n, i) => ({ name: i ? i + "xx" : "no response", n })).filter(c => c.n > 0), number);

function tiles(r, color) {
  const c = r.conns, u = r.runtime, total = r.stages[0];
  set($("rate"), number(r.requests));
  set($("classes"), (r.average ? "on average: " : "") + byClass(r.classes));
  set($("p99"), time(total.p99));
  set($("p50"), total.p50 ? `half below ${time(total.p50)}, nine in ten below ${time(total.p90)}` : "");
  set($("open"), number(c.open));
  const kinds = [{ name: "active", n: c.active }, { name: "HTTP/1", n: c.http1 }, { name: "HTTP/2", n: c.http2 },
    { name: "HTTP/3", n: c.http3 }, { name: "WebSockets", n: c.webSockets }, { name: "streams", n: c.eventStreams }, { name: "on goroutines", n: c.goroutines }];
  set($("conns"), [listed(kinds.filter(k => k.n > 0), number), `${number(c.accepted)} new/s`,
    r.tls.early > 0 && `${number(r.tls.early)} early requests/s`].filter(Boolean).join("; "));
  set($("running"), number(r.running));
  set($("waiting"), `${number(r.waiting)} waiting; ${listed(r.ways.filter(w => w.n > 0), n => percent(n / (r.requests || 1)))}`);
  set($("written"), bytes(r.written));
  set($("read"), bytes(r.read) + " in");
  set($("calls"), digits(r.syscalls.reduce((sum, s) => sum + s.n, 0)));
  set($("calls-by"), listed(r.syscalls.slice(0, 4), n => n.toFixed(2)));
  const measured = text => r.average ? "measuring" : text;
  set($("gc"), measured(percent(u.gc)));
  set($("heap"), `heap ${bytes(u.heap)} of ${bytes(u.heapGoal)}` +
    (r.average ? "" : `; ${bytes(u.allocated)} allocated/s; ${digits(u.collections)} collections, pauses ${time(u.pause)}`));
  set($("locks"), measured(time(u.locks * 1e9) + (u.locks ? "/s" : "")));
  set($("goroutines"), `${number(u.goroutines)} goroutines` + (r.average ? "" : `; ready for ${time(u.scheduling)} before they run, 99 %`));
  for (const key of ["rate", "p99", "open", "running"]) line($(key + "-line"), past[key], color);
}

// place is where a duration is on a scale from 1 µs to 100 s, in percent; each quarter is a factor of 100.
const place = ns => Math.min(Math.max(Math.log10(Math.max(ns, 1) / 1e3) / 8 * 100, 0), 100);

function stages(r) {
  const names = { total: "whole request", head: "slow head", wait: "slot or goroutine", handler: "handler", write: "rest of the response" };
  fill($("stages"), r.stages, cells("hnnnnw", row => {
    const range = document.createElement("div");
    range.className = "range";
    range.ariaHidden = "true";
    for (const name of ["few", "most"]) {
      const b = document.createElement("b");
      b.className = name;
      range.append(b);
    }
    row.lastElementChild.append(range);
  }), (cell, s) => {
    set(cell[0], names[s.name] || s.name);
    set(cell[1], s.rate ? number(s.rate) : "–");
    [s.p50, s.p90, s.p99].forEach((t, i) => set(cell[i + 2], time(t)));
    const [few, most] = cell[5].firstElementChild.children;
    for (const [b, from, to] of [[few, s.p90, s.p99], [most, s.p50, s.p90]]) {
      b.hidden = !s.rate;
      b.style.left = place(from) + "%";
      b.style.width = Math.max(place(to) - place(from), 0) + "%";
    }
  });
}

function loops(r, color) {
  let top = 1;
  for (const list of past.loops) for (const l of list) top = Math.max(top, l.inline + l.direct + l.pooled);
  fill($("loops"), r.loops, cells("hlnnnnNNNn", row => {
    const canvas = document.createElement("canvas");
    canvas.ariaHidden = "true";
    row.cells[1].append(canvas);
  }), (cell, l) => {
    const lately = past.loops[l.index] || [];
    set(cell[0], String(l.index));
    lane(cell[1].firstElementChild, lately, top, color);
    const handed = lately.reduce((n, s) => n + s.handovers, 0);
    [percent(l.busy), number(l.inline + l.direct), number(l.pooled), number(handed), number(l.connections), number(l.atWork),
      time(l.turnP99), l.stale ? "> 100 ms" : time(l.lag)].forEach((text, i) => set(cell[i + 2], text));
    cell[9].classList.toggle("bad", l.stale || l.lag > 5e7);
  }, "none: all connections are on goroutines");
  set($("loops-more"), r.allLoops > r.loops.length ? `${r.allLoops - r.loops.length} more are not shown` : "");
}

let sort = "share", latest;
function routes(r) {
  const list = r.routes.toSorted((a, b) => b[sort] - a[sort]);
  fill($("routes"), list, cells("Hnnnnnnn ", row => {
    const ways = document.createElement("div");
    ways.className = "ways";
    ways.ariaHidden = "true";
    row.cells[8].append(ways, document.createElement("span"));
  }), (cell, t) => {
    set(cell[0], t.pattern || "(no route)");
    [number(t.rate), time(t.p50), time(t.p99), time(t.handler), percent(t.share), t.errors ? number(t.errors) : "", t.handovers ? number(t.handovers) : ""]
      .forEach((text, i) => set(cell[i + 1], text));
    cell[6].classList.toggle("bad", t.errors > 0);
    const [bar, text] = cell[8].children;
    while (bar.children.length > t.ways.length) bar.lastElementChild.remove();
    while (bar.children.length < t.ways.length) bar.append(document.createElement("b"));
    t.ways.forEach((w, i) => {
      bar.children[i].className = w.name;
      bar.children[i].style.width = w.n * 100 + "%";
    });
    set(text, listed(t.ways, percent) + (t.demotions ? `; demoted ${t.demotions}×` : ""));
  }, "no request in this second");
}

function lists(r) {
  fill($("longest"), r.longest, cells("n t w"), (cell, q) => {
    [time(q.age), q.stage, q.method + " " + q.target, q.way + (q.loop < 0 ? "" : ", loop " + q.loop), q.peer].forEach((text, i) => set(cell[i], text));
  }, "none beside those that a loop runs at this moment");
  fill($("recent"), r.recent, cells("  tn"), (cell, e) => {
    // The pattern of a route has its method, if it has one; a path has no space.
    const names = { proven: "runs on loops now", demoted: "no longer runs on loops", handover: "handed over" };
    [new Date(e.at).toLocaleTimeString(), names[e.kind] || e.kind, e.target.includes(" ") ? e.target : (e.method + " " + e.target).trim(), e.held ? time(e.held) : ""].forEach((text, i) => set(cell[i], text));
  }, "nothing yet");
  fill($("troubles"), r.troubles, cells("tn"), (cell, t) => {
    set(cell[0], t.name);
    set(cell[1], number(t.n));
  }, "none");
}

function draw() {
  const r = latest;
  if (!r || document.hidden) return;
  const styles = getComputedStyle(document.documentElement), known = {};
  const color = name => known[name] ||= styles.getPropertyValue(name);
  set($("uptime"), "up " + span((new Date(r.at) - new Date(r.since)) / 1000));
  const totals = byClass(r.totals);
  set($("totals"), totals && "Requests since the start: " + totals);
  found(r.findings);
  tiles(r, color);
  stages(r);
  loops(r, color);
  routes(r);
  lists(r);
}

// The sites, their certificates and the configuration, which change seldom.
const listedSites = 100;

function setup(s) {
  const sites = s.Sites || [];
  $("setup").hidden = !sites.length && !s.Config;
  const at = t => new Date(t).toLocaleString();
  let text = s.Config ? `${s.Config}, loaded ${at(s.Loaded)}` : "";
  if (s.Reload?.Error) text += `; the reload of ${at(s.Reload.At)} failed, and this stays: ${s.Reload.Error}`;
  set($("loaded"), text);
  $("loaded").className = s.Reload?.Error ? "bad" : "soft";
  fill($("sites"), sites.slice(0, listedSites), cells("Htwn"), ([hosts, what, certificate, expires], site) => {
    const left = site.Expires ? (new Date(site.Expires) - Date.now()) / 1000 : 0;
    set(hosts, site.Hosts.join(", "));
    set(what, site.What);
    set(certificate, site.Certificate || "none");
    set(expires, !site.Expires ? "–" : left > 0 ? span(left) : "expired");
    expires.className = site.Expires && left < 7 * 86400 ? "n bad" : "n";
  }, "no sites");
  set($("sites-more"), sites.length > listedSites ? `and ${sites.length - listedSites} more` : "");
}

// The upstreams, and their servers below each. Rates are those since the answer before.
let asked = null;
const listedServers = 200; // of thousands, those first that get no requests

function upstreams(list) {
  const before = {}, rows = [];
  const away = s => s.draining || s.state === "ejected" || s.check === "failing";
  const all = list.upstreams.flatMap(u => u.servers), failing = all.filter(away).length;
  let room = listedServers, spare = Math.max(listedServers - failing, 0); // for servers, and for others than the failing
  const seconds = asked ? (new Date(list.at) - new Date(asked.at)) / 1000 : 0;
  for (const u of asked?.upstreams || []) for (const s of u.servers) before[u.name + " " + s.addr] = s;
  for (const u of list.upstreams) {
    const b = u.retries, notes = [u.balance];
    if (u.panic) notes.push("too few servers are up, so ejections are ignored");
    if (u.max_queue) notes.push(`${u.queue} of at most ${u.max_queue} wait`);
    if (b.retries || b.refused) notes.push(`${b.retries} retries of at most ${b.limit} in 10 s` + (b.refused ? `, ${b.refused} not permitted so far` : ""));
    if (u.resolve) notes.push(u.resolve);
    rows.push({ name: u.name, state: notes.join("; "), bad: u.panic || u.resolve });
    for (const s of u.servers) if (room && (away(s) || spare)) {
      room--;
      if (!away(s)) spare--;
      rows.push({ server: s, name: s.name ? `${s.addr} (${s.name})` : s.addr, old: before[u.name + " " + s.addr] });
    }
  }
  set($("upstreams-more"), all.length > listedServers ? `and ${all.length - listedServers} more servers` : "");
  $("upstreams-section").hidden = !rows.length;
  fill($("upstreams"), rows, cells("HtnNnNNNN"), (cell, r) => {
    const s = r.server;
    set(cell[0], s ? "\u2003" + r.name : r.name);
    if (!s) {
      set(cell[1], r.state);
      cell[1].className = r.bad ? "long bad" : "long soft";
      for (let i = 2; i < 9; i++) set(cell[i], "");
      return;
    }
    let state = s.draining ? "draining" : s.state;
    if (s.check !== "unchecked") state += ", checks " + s.check;
    if (s.backup) state += ", backup";
    if (s.cause && (s.state === "ejected" || s.check === "failing")) state += ": " + s.cause;
    if (s.until) state += `, for ${span(Math.max((new Date(s.until) - new Date(list.at)) / 1000, 0))}`;
    set(cell[1], state);
    cell[1].className = s.state === "ejected" || s.check === "failing" ? "long bad" : "long";
    const rate = key => r.old && seconds > 0 ? number(Math.max(s[key] - r.old[key], 0) / seconds) : "–";
    [rate("requests"), s.failures ? number(s.failures) : "", time(s.latency), s.max_requests ? `${s.in_flight} of ${s.max_requests}` : number(s.in_flight),
      number(s.idle), s.requests ? percent(s.reused / s.requests) : "–", s.ejections ? number(s.ejections) : ""].forEach((text, i) => set(cell[i + 2], text));
  });
  stores(list, seconds);
  asked = list;
}

// The stores through which topics and rooms are shared.
function stores(list, seconds) {
  const before = {}, all = list.stores || [];
  for (const s of asked?.stores || []) before[s.name] = s;
  $("stores-section").hidden = !all.length;
  fill($("stores"), all, cells("HtnNNnNNN"), (cell, s) => {
    const old = before[s.name], rate = key => old && seconds > 0 ? number(Math.max(s[key] - old[key], 0) / seconds) : "–";
    set(cell[0], s.name);
    set(cell[1], s.away ? "away" : "connected");
    cell[1].className = s.away ? "long bad" : "long";
    [rate("read"), rate("published"), number(s.streams), s.waiting ? number(s.waiting) : "", s.failed ? number(s.failed) : "",
      s.cuts ? number(s.cuts) : "", s.gaps ? number(s.gaps) : ""].forEach((text, i) => set(cell[i + 2], text));
  });
}

async function ask() {
  if (document.hidden || paused()) return;
  try {
    const res = await fetch("upstreams");
    if (!res.ok) return;
    const list = await res.json();
    upstreams(list);
    if (!list.upstreams.length && !list.stores.length) asked = null;
  } catch {} // the stream says so
}

async function look() {
  if (document.hidden || paused()) return;
  try {
    const res = await fetch("setup");
    if (res.ok) setup(await res.json());
  } catch {} // the stream says so
}

// Another process may be another version, with another configuration: the head says which.
async function succeeded() {
  look();
  try {
    const res = await fetch("./");
    if (res.ok) set($("about"), new DOMParser().parseFromString(await res.text(), "text/html").getElementById("about").textContent);
  } catch {} // the stream says so
}

const pause = $("pause");
const paused = () => pause.getAttribute("aria-pressed") === "true";
pause.addEventListener("click", () => {
  pause.setAttribute("aria-pressed", String(!paused()));
  draw();
});
$("routes-head").addEventListener("click", e => {
  const key = e.target.dataset.key;
  if (!key) return;
  sort = key;
  for (const th of $("routes-head").cells) {
    if (th.ariaSort) th.ariaSort = th.firstElementChild?.dataset.key === key ? "descending" : "none";
  }
  draw();
});
addEventListener("resize", draw);
document.addEventListener("visibilitychange", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);

function state(text, kind) {
  set($("state"), text);
  $("dot").className = "dot " + kind;
}

// A browser connects again by itself when a stream ends, but not after an error status, nor if the other end has gone
// without a word: then the figures are old, and the connection stays open for minutes.
let stream, heard;
function connect() {
  heard = Date.now();
  stream = new EventSource("events");
  stream.onopen = () => {
    heard = Date.now();
    state("live", "live");
  };
  stream.onmessage = e => {
    heard = Date.now();
    if ($("dot").className !== "dot live") state("live", "live");
    const r = JSON.parse(e.data);
    if (!r) return;
    record(r);
    if (paused()) return;
    latest = r;
    draw();
  };
  stream.onerror = () => {
    state("no connection; trying again", "lost");
    if (stream.readyState === EventSource.CLOSED) setTimeout(connect, 2000);
  };
}
connect();
setInterval(() => {
  const silence = Date.now() - heard;
  if (stream.readyState !== EventSource.OPEN || silence < 5000) return;
  state("no figures for seconds; trying again", "lost");
  if (silence < 10000) return;
  stream.close(); // calls no handler
  connect();
}, 1000);
look();
setInterval(look, 10000);
ask();
setInterval(() => { if (asked) ask(); }, 2000);
setInterval(() => { if (!asked) ask(); }, 10000);
