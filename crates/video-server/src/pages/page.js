// The page at `/`: plays a title of the library, and draws the state of the connection that carries it.

const SPAN = 60, HTTP3 = "HTTP/3.0", $ = id => document.getElementById(id);
const video = $("video"), scripts = document.body.dataset.scripts.split(" ").filter(Boolean);
const sleep = ms => new Promise(done => setTimeout(done, ms));
let player = null, chosen = null, problem = null;

// --- Commands to paste

// A host that a shell would not take as it stands is not written into a command.
const safe = /^https:\/\/[\w.:[\]-]+$/.test(location.origin);
const base = safe ? location.origin : "https://HOST";
const host = safe ? `${location.hostname}:${location.port || 443}` : "HOST:443";
const pin = document.body.dataset.pin;
$("chromium").textContent = `chromium --user-data-dir="$(mktemp -d)" --origin-to-force-quic-on=${host} --ignore-certificate-errors-spki-list=${pin} ${base}/`;
function command(title) {
  $("client").hidden = !title;
  if (title) $("command").textContent = `video-client play ${base}${title.path} --pin ${pin}`;
}
for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText($(button.dataset.copy).textContent);
    button.textContent = "Copied";
    await sleep(1500);
    button.textContent = "Copy";
  });
}

// --- Playing

const titles = [...document.querySelectorAll(".title")].map(item => {
  const link = item.querySelector("a");
  return { item, kind: item.dataset.kind, path: link.getAttribute("href"), name: link.textContent };
});

function load(name) {
  return new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = `/.playrate/${name}`;
    script.addEventListener("load", done);
    script.addEventListener("error", () => failed(new Error(`the server did not send ${name}`)));
    document.head.append(script);
  });
}

function complain(text) {
  problem = text;
  $("problem").textContent = text || "";
  $("problem").hidden = !text;
}

const native = kind => kind === "mp4" || kind === "hls" && video.canPlayType("application/vnd.apple.mpegurl") !== "";

const players = {
  async dash(path) {
    await load("dash.js");
    const { MediaPlayer } = window.dashjs, made = MediaPlayer().create();
    // The server's controller learns of the player's buffer by these fields.
    made.updateSettings({ streaming: { cmcd: { enabled: true, mode: "headers", sid: crypto.randomUUID() } } });
    made.on(MediaPlayer.events.ERROR, event => complain(`dash.js: ${event.error && event.error.message}`));
    made.initialize(video, path, true);
    return () => made.destroy();
  },
  async hls(path) {
    await load("hls.js");
    const { Hls } = window;
    // The page's policy allows no worker made from a text.
    const made = new Hls({ enableWorker: false, cmcd: { sessionId: crypto.randomUUID(), useHeaders: true } });
    made.on(Hls.Events.ERROR, (_, { fatal, details }) => { if (fatal) complain(`hls.js: ${details}`); });
    made.on(Hls.Events.MANIFEST_PARSED, () => video.play());
    made.loadSource(path);
    made.attachMedia(video);
    return () => made.destroy();
  },
};

async function play(title) {
  if (player) player();
  player = null; chosen = title;
  posters.length = 0;
  for (const other of titles) other.item.classList.toggle("on", other === title);
  $("watch").classList.add("playing"); $("name").textContent = title.name;
  complain(null); command(title);
  video.removeAttribute("src"); video.load();
  $("watch").scrollIntoView({ block: "start" });
  keep(10);
  try {
    if (scripts.includes(`${title.kind}.js`)) {
      const stop = await players[title.kind](title.path);
      if (chosen === title) player = stop; else stop();
    } else if (native(title.kind)) {
      video.src = title.path;
      await video.play();
    } else if (title.kind === "payload") {
      complain("This is generated payload without pictures: watch it with video-client, as below.");
    } else {
      complain(`This browser does not play ${title.kind.toUpperCase()} by itself, and the server has no ${title.kind}.js: it needs the option --player-scripts. The line below plays it without a browser.`);
    }
  } catch (error) {
    // A title that is replaced by another has its start aborted, and what the video says is better.
    if (chosen === title && error.name !== "AbortError" && !problem) complain(error.message);
  }
}
video.addEventListener("error", () => {
  if (video.hasAttribute("src") && video.error) complain(`The browser cannot play this: ${video.error.message || `error ${video.error.code}`}`);
});
for (const title of titles) {
  const button = document.createElement("button");
  button.type = "button"; button.textContent = "Play"; button.setAttribute("aria-label", `Play ${title.name}`);
  button.addEventListener("click", () => play(title));
  title.item.lastElementChild.append(button);
}
command(titles[0]);

// --- Posters: the first frame of each MP4 that comes into view, one at a time, until something plays

const posters = [];
let drawing = false;
async function drawPosters() {
  if (drawing) return;
  drawing = true;
  while (posters.length > 0) await drawPoster(posters.shift());
  drawing = false;
}
async function drawPoster({ item, path }) {
  const film = document.createElement("video"), place = item.querySelector(".poster");
  film.muted = true; film.preload = "metadata";
  const loaded = new Promise(done => { film.addEventListener("loadeddata", () => done(true)); film.addEventListener("error", () => done(false)); });
  // Only a video that is shown has a frame to draw, and only once the frame has come up.
  const shown = film.requestVideoFrameCallback ? new Promise(done => film.requestVideoFrameCallback(done)) : sleep(300);
  film.src = path;
  place.replaceChildren(film);
  if (await Promise.race([loaded, sleep(8000)])) {
    await Promise.race([shown, sleep(1000)]);
    const canvas = document.createElement("canvas");
    canvas.width = 224; canvas.height = 126;
    // The whole frame, with bars where its shape differs.
    const scale = Math.min(canvas.width / film.videoWidth, canvas.height / film.videoHeight), w = film.videoWidth * scale, h = film.videoHeight * scale;
    canvas.getContext("2d").drawImage(film, (canvas.width - w) / 2, (canvas.height - h) / 2, w, h);
    place.replaceChildren(canvas);
  } else {
    place.replaceChildren();
  }
  // Ends its request.
  film.removeAttribute("src"); film.load();
}
const inView = new IntersectionObserver(entries => {
  for (const entry of entries.filter(entry => entry.isIntersecting)) {
    inView.unobserve(entry.target);
    if (!chosen) posters.push(titles.find(title => title.item === entry.target));
  }
  drawPosters();
});
for (const title of titles) if (title.kind === "mp4") inView.observe(title.item);

// --- The connection

const samples = [];
let asking = false, active = 0;

// Asks once a second for the next `seconds`. Otherwise the connection is left alone, so that it may become idle.
function keep(seconds) {
  active = Math.max(active, performance.now() + seconds * 1e3);
  if (!asking) { asking = true; ask(); }
}
async function ask() {
  while (performance.now() < active) {
    if (!document.hidden) {
      try {
        const answer = await fetch("/.playrate/connection.json", { cache: "no-store" });
        take(answer.ok ? await answer.json() : null);
      } catch { take(null); }
    }
    if (!video.paused && !video.ended) active = Math.max(active, performance.now() + 10_000);
    await sleep(1000);
  }
  asking = false;
}
for (const event of ["play", "seeking", "waiting"]) video.addEventListener(event, () => keep(10));

function ahead() {
  for (let i = 0; i < video.buffered.length; i += 1) {
    if (video.buffered.start(i) <= video.currentTime + .1 && video.currentTime < video.buffered.end(i)) return video.buffered.end(i) - video.currentTime;
  }
  return video.readyState > 0 ? 0 : null;
}

function take(state) {
  const http3 = state?.protocol === HTTP3, status = $("protocol");
  status.classList.toggle("http3", http3);
  status.textContent = !state ? "no answer from the server" : http3 ? "HTTP/3" : state.protocol.replace("/2.0", "/2");
  if (!state) return;
  document.body.classList.toggle("over-http3", http3);
  $("http3").hidden = http3;
  if (!http3) $("version").textContent = status.textContent;
  const last = samples[samples.length - 1], t = performance.now() / 1e3;
  // Another connection begins new curves.
  if (last && (state.protocol !== last.protocol || state.age_s < last.age_s)) samples.length = 0;
  const before = samples[samples.length - 1];
  const sample = { ...state, t, ahead: chosen ? ahead() : null };
  sample.rate = before && state.age_s > before.age_s ? (state.delivered - before.delivered) * 8 / (state.age_s - before.age_s) : null;
  samples.push(sample);
  while (samples[0].t < t - SPAN - 4) samples.shift();
  $("about").textContent = http3
    ? [state.controller + (state.arm ? ` (arm ${state.arm})` : ""), state.phase && `${state.phase}, ${state.reason}`, `${short(state.delivered / 1e6)} MB delivered`,
      state.sent > 0 && `${short(100 * state.lost / state.sent)} % lost`, `${state.congestion_events} congestion events`].filter(Boolean).join(" · ")
    : "";
}

const PANELS = [
  { least: 1, lines: [{ name: "delivered", color: "a", value: c => mega(c.rate) }, { name: "video", color: "b", dash: true, step: true, value: c => mega(c.video_rate) }] },
  { least: 10, phase: c => c.phase, lines: [{ name: "in flight", color: "c", value: c => kilo(c.in_flight) }, { name: "window", color: "a", value: c => kilo(c.window) }] },
  { least: 1, lines: [{ name: "smallest", color: "c", dash: true, value: c => c.min_rtt_ms }, { name: "smoothed", color: "d", value: c => c.rtt_ms }] },
  { least: 4, lines: [{ name: "buffer", color: "c", value: c => c.ahead }] },
];
let drawn = 0;
function draw(at) {
  requestAnimationFrame(draw);
  if (at - drawn < 50 || samples.length === 0 || !$("watch").classList.contains("playing")) return;
  drawn = at;
  const last = samples[samples.length - 1];
  // Runs on smoothly between two answers, and stands still when nothing is asked for.
  const end = Math.min(at / 1e3 - 1.2, last.t);
  PANELS.forEach((one, i) => { if ($("p" + i).clientWidth > 0) panel($("p" + i), $("l" + i), samples, one, end, SPAN); });
}
requestAnimationFrame(draw);
// Once now, and some seconds for a browser that changes over to HTTP/3.
keep(5);
