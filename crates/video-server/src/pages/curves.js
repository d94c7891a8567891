"use strict";
// Curves over time on a canvas, for the page and for the operator's dashboard. A sample has its time `t` in seconds.

const theme = {};
function readTheme() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["soft", "faint", "a", "b", "c", "d"]) theme[name] = style.getPropertyValue("--" + name).trim();
}
readTheme();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", readTheme);

const short = v => v == null ? "–" : v >= 100 ? v.toFixed(0) : v >= 10 ? v.toFixed(1) : v.toFixed(2);
const mega = v => v == null ? null : v / 1e6;
const kilo = v => v == null ? null : v / 1e3;

function surface(canvas) {
  const r = devicePixelRatio || 1, w = canvas.clientWidth, h = canvas.clientHeight;
  if (canvas.width !== Math.round(w * r) || canvas.height !== Math.round(h * r)) { canvas.width = Math.round(w * r); canvas.height = Math.round(h * r); }
  const g = canvas.getContext("2d");
  g.setTransform(r, 0, 0, r, 0, 0); g.clearRect(0, 0, w, h);
  return [g, w, h];
}

// The round number at or above `top` that ends an axis.
const nice = top => { const p = 10 ** Math.floor(Math.log10(top)), m = top / p; return p * (m <= 1 ? 1 : m <= 2 ? 2 : m <= 4 ? 4 : m <= 5 ? 5 : m <= 8 ? 8 : 10); };

function trace(g, samples, value, x, y, step) {
  let open = false, before = 0;
  g.beginPath();
  for (const c of samples) {
    const v = value(c);
    if (v == null) { open = false; continue; }
    if (open) { if (step) g.lineTo(x(c.t), before); g.lineTo(x(c.t), y(v)); } else g.moveTo(x(c.t), y(v));
    before = y(v); open = true;
  }
  g.stroke();
}

// A label where the name changes that `name` gives a sample, unless it would cover the one before.
function changes(g, samples, name, x, y, right) {
  let before, end = -Infinity;
  g.textAlign = "left"; g.textBaseline = "top"; g.lineWidth = 1; g.setLineDash([2, 3]);
  for (const c of samples) {
    const now = name(c);
    if (now === before) continue;
    before = now;
    const at = Math.max(x(c.t), x.left), wide = now ? g.measureText(now).width : 0;
    g.strokeStyle = theme.soft; g.beginPath(); g.moveTo(at + .5, y(0)); g.lineTo(at + .5, 0); g.stroke();
    if (now && at > end && at + wide < right) { g.fillStyle = theme.soft; g.fillText(now, at + 4, 0); end = at + wide + 8; }
  }
}

// Draws `lines` ({name, color, value, dash, step}) over the `span` seconds before `end`; the axis reaches at least `least`.
function panel(canvas, legend, samples, { lines, least, phase }, end, span) {
  const [g, w, height] = surface(canvas), left = 44, right = 6, top = phase ? 15 : 8, bottom = 20, begin = end - span;
  const seen = samples.filter(c => c.t > begin - 2);
  let most = least;
  for (const l of lines) for (const c of seen) { const v = l.value(c); if (v != null) most = Math.max(most, v); }
  most = nice(most * 1.05);
  const x = t => left + (w - left - right) * (t - begin) / span, y = v => top + (height - top - bottom) * (1 - Math.min(v, most * 1.02) / most);
  x.left = left;
  g.font = "11px system-ui, sans-serif"; g.lineWidth = 1;
  g.textAlign = "right"; g.textBaseline = "middle";
  for (let i = 0; i <= 4; i += 2) {
    const v = most * i / 4, at = Math.round(y(v)) + .5;
    g.strokeStyle = theme.faint; g.beginPath(); g.moveTo(left, at); g.lineTo(w - right, at); g.stroke();
    g.fillStyle = theme.soft; g.fillText(v >= 10 ? v.toFixed(0) : String(+v.toPrecision(2)), left - 7, at);
  }
  g.textBaseline = "alphabetic"; g.fillStyle = theme.soft;
  for (let i = 0; i <= 4; i += 1) {
    const s = span * i / 4;
    g.textAlign = i === 0 ? "right" : i === 4 ? "left" : "center";
    g.fillText(i === 0 ? "now" : `−${s} s`, x(end - s), height - 5);
  }
  g.save(); g.beginPath(); g.rect(left, 0, w - left - right, height - bottom + 1); g.clip();
  if (phase) changes(g, seen, phase, x, y, w - right);
  g.lineJoin = "round";
  for (const l of lines) { g.strokeStyle = theme[l.color]; g.lineWidth = l.dash ? 1.5 : 2; g.setLineDash(l.dash ? [5, 4] : []); trace(g, seen, l.value, x, y, l.step); }
  g.restore();
  const c = samples[samples.length - 1], text = lines.map(l => `${l.name} ${short(l.value(c))}`);
  if (legend.dataset.text !== text.join("|")) {
    legend.dataset.text = text.join("|");
    legend.replaceChildren(...lines.map((l, at) => { const s = document.createElement("span"), i = document.createElement("i");
      i.className = l.dash ? `${l.color} dash` : l.color; s.append(i, text[at]); return s; }));
  }
}
