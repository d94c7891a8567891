// The page at `/`: plays a title of the library, and draws the state of the connection that carries it.

const SPAN = 60, HTTP3 = "HTTP/3.0", $ = id => document.getElementById(id);
const scripts = document.body.dataset.scripts.split(" ").filter(Boolean);
const sleep = ms => new Promise(done => setTimeout(done, ms));
let video = $("video"), player = null, chosen = null, problem = null;

// --- Commands to paste

// An address that quotes would not keep from a shell is not written into a command. It may begin with a token.
const address = location.origin + location.pathname;
const safe = /^https:\/\/[\w.:[\]-]+\/(~[\w.-]+\/)?$/.test(address);
const base = safe ? address : "https://HOST/";
const host = safe ? `${location.hostname}:${location.port || 443}` : "HOST:443";
const pin = document.body.dataset.pin;
// Quotes, because shells take brackets (of IPv6 addresses) for patterns.
$("chromium").textContent = `chromium --user-data-dir="$(mktemp -d)" '--origin-to-force-quic-on=${host}' --ignore-certificate-errors-spki-list=${pin} '${base}'`;
// `video-client` plays no live titles.
function command(title) {
  $("client").hidden = !title || title.live;
  if (title) $("command").textContent = `video-client play '${base}${title.url.slice(address.length)}' --pin ${pin}`;
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

// All addresses are relative, because that of the page may begin with a token.
const titles = [...document.querySelectorAll("a[data-kind]")].map(link => {
  const item = link.closest(".title");
  return { item, kind: link.dataset.kind, url: link.href, name: link.textContent, live: "live" in item.dataset };
});

const loaded = {};
function load(name) {
  return loaded[name] ??= new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = `.playrate/${name}`;
    script.addEventListener("load", done);
    script.addEventListener("error", () => { delete loaded[name]; failed(new Error(`the server did not send ${name}`)); });
    document.head.append(script);
  });
}

function complain(text) {
  problem = text;
  $("problem").textContent = text || "";
  $("problem").hidden = !text;
}

const native = kind => kind === "mp4" || kind === "hls" && video.canPlayType("application/vnd.apple.mpegurl") !== "";

const playable = kind => scripts.includes(`${kind}.js`) || native(kind);

// Each loads `url` into `film`, at the lowest rate unless it is watched, and returns a function that stops it.
// The server's controller learns of a watched player's buffer by CMCD.
const players = {
  async dash(film, url, watched) {
    await load("dash.js");
    const { MediaPlayer } = window.dashjs, made = MediaPlayer().create();
    // A live title's clock is this server's, not one elsewhere.
    const clock = { scheme: "urn:mpeg:dash:utc:http-head:2014", value: address };
    made.updateSettings({ streaming: { abr: { initialBitrate: { video: watched ? -1 : 1 } }, text: { defaultEnabled: false }, utcSynchronization: { defaultTimingSource: clock } } });
    if (watched) {
      made.updateSettings({ streaming: { cmcd: { enabled: true, mode: "headers", sid: crypto.randomUUID() } } });
      made.on(MediaPlayer.events.ERROR, event => complain(`dash.js: ${event.error && event.error.message}`));
    }
    made.initialize(film, url, watched);
    if (watched) made.attachTTMLRenderingDiv($("captions"));
    // It does not observe the menu of captions itself. Its tracks come after those of the page.
    made.on(MediaPlayer.events.STREAM_INITIALIZED, () => {
      film.textTracks.onchange = () => {
        const shown = [...film.textTracks].findIndex(track => track.mode === "showing");
        made.setTextTrack(Math.max(-1, shown - film.querySelectorAll("track").length));
      };
    });
    return () => made.destroy();
  },
  async hls(film, url, watched) {
    await load("hls.js");
    const { Hls } = window, cmcd = watched ? { sessionId: crypto.randomUUID(), useHeaders: true } : undefined;
    // The page's policy allows no worker made from a text.
    const made = new Hls({ enableWorker: false, startLevel: watched ? undefined : 0, cmcd });
    if (watched) {
      made.on(Hls.Events.ERROR, (_, { fatal, details }) => { if (fatal) complain(`hls.js: ${details}`); });
      made.on(Hls.Events.MANIFEST_PARSED, () => film.play());
    }
    made.loadSource(url);
    made.attachMedia(film);
    return () => made.destroy();
  },
  async mp4(film, url, watched) {
    film.src = url;
    if (watched) await film.play();
    return () => { film.removeAttribute("src"); film.load(); };
  },
};
const start = (film, { kind, url }, watched) => players[scripts.includes(`${kind}.js`) ? kind : "mp4"](film, url, watched);

async function play(title) {
  if (player) player();
  player = null; chosen = title;
  posters.length = 0;
  for (const other of titles) other.item.classList.toggle("on", other.item === title.item);
  $("watch").classList.add("playing"); $("name").textContent = title.name;
  complain(null); command(title);
  // A new element, because a player's captions cannot be taken from the old one.
  video.removeAttribute("src"); video.load();
  const film = video.cloneNode();
  video.replaceWith(film); video = film;
  $("captions").replaceChildren();
  for (const link of title.item.querySelectorAll("a[data-language]")) {
    const track = document.createElement("track");
    track.kind = "captions"; track.srclang = link.dataset.language; track.label = link.textContent; track.src = link.href;
    film.append(track);
  }
  $("watch").scrollIntoView({ block: "start" });
  keep(10);
  try {
    if (playable(title.kind)) {
      const stop = await start(film, title, true);
      if (film === video) player = stop; else stop();
    } else if (title.kind === "payload") {
      complain("This is generated payload without pictures: watch it with video-client, as below.");
    } else {
      complain(`This browser does not play ${title.kind.toUpperCase()} by itself, and the server has no ${title.kind}.js: it needs the option --player-scripts.${title.live ? "" : " The line below plays it without a browser."}`);
    }
  } catch (error) {
    // A title that is replaced by another has its start aborted, and what the video says is better.
    if (film === video && error.name !== "AbortError" && !problem) complain(error.message);
  }
}
// Events of the video do not bubble.
$("watch").addEventListener("error", ({ target }) => {
  if (target === video && video.hasAttribute("src") && video.error) complain(`The browser cannot play this: ${video.error.message || `error ${video.error.code}`}`);
}, true);
for (const title of titles) {
  const button = document.createElement("button"), single = title.item.querySelectorAll("a[data-kind]").length === 1;
  button.type = "button"; button.textContent = single ? "Play" : `Play ${title.kind.toUpperCase()}`; button.setAttribute("aria-label", `Play ${title.name}`);
  button.addEventListener("click", () => play(title));
  title.item.lastElementChild.append(button);
}
command(titles.find(title => !title.live));

// --- Posters: the first frame of each title that comes into view and has no picture, one at a time, until something plays

const posters = [];
let drawing = false;
async function drawPosters() {
  if (drawing) return;
  drawing = true;
  while (posters.length > 0) await drawPoster(posters.shift());
  drawing = false;
}
async function drawPoster(title) {
  const film = document.createElement("video"), place = title.item.querySelector(".poster"), name = place.textContent;
  film.muted = true; film.preload = "metadata";
  const loaded = new Promise(done => { film.addEventListener("loadeddata", () => done(true)); film.addEventListener("error", () => done(false)); });
  // Only a video that is shown has a frame to draw, and only once the frame has come up.
  const shown = film.requestVideoFrameCallback ? new Promise(done => film.requestVideoFrameCallback(done)) : sleep(300);
  place.replaceChildren(film);
  const stop = await start(film, title, false).catch(() => null);
  if (stop && await Promise.race([loaded, sleep(8000)]) && film.videoWidth > 0) {
    await Promise.race([shown, sleep(1000)]);
    const canvas = document.createElement("canvas");
    canvas.width = 224; canvas.height = 126;
    // The whole frame, with bars where its shape differs.
    const scale = Math.min(canvas.width / film.videoWidth, canvas.height / film.videoHeight), w = film.videoWidth * scale, h = film.videoHeight * scale;
    canvas.getContext("2d").drawImage(film, (canvas.width - w) / 2, (canvas.height - h) / 2, w, h);
    place.replaceChildren(canvas);
  } else {
    place.replaceChildren(name);
  }
  if (stop) stop();
}
const inView = new IntersectionObserver(entries => {
  for (const entry of entries.filter(entry => entry.isIntersecting)) {
    inView.unobserve(entry.target);
    if (!chosen) posters.push(titles.find(title => title.item === entry.target && playable(title.kind)));
  }
  drawPosters();
});
for (const { item, kind } of titles) if (playable(kind) && !item.querySelector(".poster img")) inView.observe(item);

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
        const answer = await fetch(".playrate/connection.json", { cache: "no-store" });
        take(answer.ok ? await answer.json() : null);
      } catch { take(null); }
    }
    if (!video.paused && !video.ended) active = Math.max(active, performance.now() + 10_000);
    await sleep(1000);
  }
  asking = false;
}
for (const event of ["play", "seeking", "waiting"]) $("watch").addEventListener(event, () => keep(10), true);

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
