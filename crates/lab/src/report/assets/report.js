// Draws the results in `#results`: the chosen case's metrics as dots with intervals, and its curves over time.
// Every number is in base units (s, bit/s, bytes, shares of 1) until `text` writes it.
const byId = (id) => document.getElementById(id);
const results = JSON.parse(byId("results").textContent);
const cases = results.cases ?? [];
const controllers = [...new Set(cases.flatMap((one) => one.controllers))];

// Line styles of the controllers that come after the colours are used up, and of further flows.
const DASHES = [null, [8, 4], [2, 3], [12, 4, 2, 4], [5, 5], [14, 6]];
// The first metrics of the list: they tell most about what a viewer sees.
const FIRST = ["impaired_share", "score", "frames_discarded", "frozen_s", "underflow_events", "startup_delay_s",
  "rebuffer_ratio", "mean_bitrate_bps", "throughput_bps", "lost_packets"];
const PREFIXES = {
  "byte": [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]],
  "bit/s": [[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"], [1, "bit/s"]],
  "s": [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]],
  "share": [[1e-2, "%"]], "count": [[1, ""]],
};
const SECONDS = { factor: 1, name: "s", digits: 3 };
// A chart of more rows than this shows extremes: those of so many bins in the time shown.
const [MOST_ROWS, BINS] = [3000, 700];

const state = { case: "", metric: "", role: "", flow: "", trial: null, sort: false, without: new Set() };
let [one, palette, charts] = [cases[0], [], []];
const time = { whole: [0, 1], shown: [0, 1] };

function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/** Fills the list `key` with pairs of value and label, and chooses the old value, `preferred`, or the first. */
function fillList(key, pairs, preferred) {
  const values = pairs.map(([value]) => value);
  if (!values.includes(state[key])) state[key] = values.includes(preferred) ? preferred : values[0] ?? "";
  byId(key).replaceChildren(...pairs.map(([value, label]) => new Option(label, value, false, value === state[key])));
  byId(key).parentElement.hidden = pairs.length < 2;
}

/** A table in a box of its own, which scrolls. The first of the `rows`' cells is the row's name. */
function table(caption, heads, rows) {
  const heading = (scope) => (content) => element("th", { scope }, content);
  const cells = ([name, ...rest]) => [heading("row")(name), ...rest.map((cell) => element("td", {}, cell))];
  return element("div", { className: "table", tabIndex: 0, role: "region", "aria-label": caption }, element("table", {},
    element("thead", {}, element("tr", {}, ...heads.map(heading("col")))),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...cells(row))))));
}

/** A link that makes a CSV file when it is followed. `lines` returns arrays of cells. */
function csvLink(label, file, lines) {
  const quoted = (cell) => (/[",\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell ?? "");
  const onclick = ({ target }) => {
    target.href = URL.createObjectURL(new Blob(lines().map((cells) => `${cells.map(quoted).join(",")}\n`)));
  };
  return element("p", {}, element("a", { href: "#", download: file.replace(/[^\w.-]+/g, "-"), onclick }, label));
}

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
/** Colour and dashes of a controller's line; `variant` is the place of its flow. */
function style(controller, variant = 0) {
  const index = controllers.indexOf(controller);
  const dashes = Math.floor(index / palette.length) + variant;
  return { color: palette[index % palette.length], strokePattern: DASHES[dashes % DASHES.length] };
}

/** A controller's name, or that of one of its lines, after a piece of the line. */
function named(controller, label = controller, variant = 0) {
  const { color, strokePattern } = style(controller, variant);
  const canvas = element("canvas", { className: "swatch", width: 52, height: 8, "aria-hidden": "true" });
  const pen = canvas.getContext("2d");
  Object.assign(pen, { strokeStyle: color, lineWidth: 8 });
  pen.setLineDash((strokePattern ?? []).map((length) => 2 * length));
  pen.stroke(new Path2D("M0 4H52"));
  return element("span", { className: "named" }, canvas, label);
}

/** The prefix in which all of `values` are written. */
function scaleOf(unit, values) {
  const largest = values.reduce((most, value) => Math.max(most, Math.abs(value) || 0), 0);
  const sizes = PREFIXES[unit] ?? [[1, unit]];
  const [factor, name] = sizes.find(([size]) => (largest > 0 ? size <= largest : size === 1)) ?? sizes.at(-1);
  const digits = largest > 0 ? 2 - Math.floor(Math.log10(largest / factor)) : 0;
  return { factor, name, digits: Math.min(Math.max(digits, 0), 4), whole: unit === "count" };
}

const known = (value) => value !== null && value !== undefined && !Number.isNaN(value);
const shownControllers = () => one.controllers.filter((controller) => !state.without.has(controller));
const indexAt = (times, at) => times.findLastIndex((each) => each <= at);
const headed = (label, scale) => (scale.name ? `${label} (${scale.name})` : label);

function text(value, scale) {
  if (!known(value)) return "–";
  const shown = value / scale.factor;
  let form = { minimumFractionDigits: scale.digits, maximumFractionDigits: scale.digits };
  if (scale.whole && Number.isInteger(value)) form = {};
  else if (shown !== 0 && Math.abs(shown) < 10 ** -scale.digits) form = { maximumSignificantDigits: 2 };
  return shown.toLocaleString("en", form).replace("-", "−");
}

const withUnit = (value, scale) => `${text(value, scale)} ${scale.name}`.trim();
const interval = ({ low, high }, scale) => (known(low) ? `${text(low, scale)} to ${text(high, scale)}` : "–");

/** Options that all charts share. */
function chartOptions(x, y) {
  const label = (scale) => (value) => String(Number((value / scale.factor).toPrecision(8))).replace("-", "−");
  return {
    legend: "never", rightGap: 16, axisLineColor: css("--soft"), gridLineColor: css("--rule"), gridLineWidth: 1,
    animateBackgroundFade: false, highlightSeriesBackgroundAlpha: 0.4, highlightSeriesBackgroundColor: css("--sheet"),
    axes: {
      x: { axisLabelFormatter: label(x), axisLabelFontSize: 13, pixelsPerLabel: 50 },
      y: { axisLabelFormatter: label(y), axisLabelFontSize: 13, axisLabelWidth: 48, pixelsPerLabel: 40 },
    },
  };
}

/** What the difference from the baseline means. */
function verdict({ low, high }, better) {
  if (!known(low)) return "–";
  if (low <= 0 && high >= 0) return "no clear difference";
  if (!better) return low > 0 ? "higher" : "lower";
  return (low > 0) === (better === "higher") ? "better" : "worse";
}

function drawMetric() {
  const metric = results.metrics.find(({ name }) => name === state.metric) ?? {};
  const shown = shownControllers();
  const own = (each) => each.role === state.role && shown.includes(each.controller);
  const summaries = one.summaries.filter((each) => own(each) && each.metric === state.metric && known(each.mean));
  if (state.sort) summaries.sort((a, b) => a.mean - b.mean);
  const better = { lower: "Lower is better.", higher: "Higher is better." }[metric.better] ?? "";
  byId("metric-about").textContent = `${metric.label}${metric.about ? `: ${metric.about}` : ""}. ${better}`;
  byId("metric-view").replaceChildren(summaries.length ? "" : "No chosen controller has this metric.");
  if (!summaries.length) return;
  const rows = one.rows.filter((row) => own(row) && known(row.values[metric.name]));
  const scale = scaleOf(metric.unit, summaries.flatMap(({ low, high, min, max }) => [low, high, min, max]));
  drawDots(metric, summaries, rows, scale);
  byId("metric-view").append(summaryTable(metric, summaries, scale));
}

function summaryTable(metric, summaries, scale) {
  const differences = summaries.map(({ difference }) => difference).filter(Boolean);
  const small = scaleOf(metric.unit, differences.flatMap(({ mean, low, high }) => [mean, low, high]));
  const baseline = differences[0]?.baseline;
  const compared = baseline ? [headed(`Difference from ${baseline}`, small), "95 % interval", "Result"] : [];
  const heads = ["Controller", headed("Mean", scale), "95 % interval", ...compared, "Smallest", "Largest", "Trials"];
  return table(`${metric.label} by controller`, heads, summaries.map(({ controller, difference, ...each }) => {
    const alone = !difference || baseline === controller;
    const cells = () => [text(difference.mean, small), interval(difference, small), verdict(difference, metric.better)];
    return [named(controller), text(each.mean, scale), interval(each, scale),
      ...(alone ? compared.map(() => "–") : cells()), text(each.min, scale), text(each.max, scale), each.count];
  }));
}

/** Draws a line for each controller: its mean with the interval, and below a dot for each row. */
function drawDots(metric, summaries, rows, scale) {
  const places = new Map(summaries.map(({ controller }, index) => [controller, -index]));
  const points = [
    ...summaries.map((each) => ({ ...each, x: each.mean, mean: places.get(each.controller) + 0.14 })),
    ...rows.map((row, index) => (
      { ...row, x: row.values[metric.name], trialY: places.get(row.controller) - 0.2 - (index % 3) * 0.08 })),
  ].sort((a, b) => a.x - b.x);
  const ends = points.flatMap(({ x, low, high }) => [x, low, high]).filter(known);
  let [from, to] = [Math.min(...ends), Math.max(...ends)];
  if (from > 0 && from < to / 2) from = 0;
  const gap = (to - from || Math.abs(to) || scale.factor) * 0.04;
  const dot = (pen, { controller, trialY }, x, y, radius) => {
    pen.fillStyle = `${style(controller).color}${trialY && radius < 8 ? "90" : ""}`;
    pen.beginPath();
    pen.arc(x, y, radius, 0, 2 * Math.PI);
    pen.fill();
  };
  const drawIntervals = (pen, chart) => {
    for (const { controller, low, high, mean } of points.filter((point) => known(point.low))) {
      const [left, right, y] = [chart.toDomXCoord(low), chart.toDomXCoord(high), chart.toDomYCoord(mean)];
      Object.assign(pen, { strokeStyle: style(controller).color, lineWidth: 3 });
      pen.stroke(new Path2D(`M${left} ${y}H${right}M${left} ${y - 6}v12M${right} ${y - 6}v12`));
    }
  };
  const describe = ({ controller, trial, seed, viewer, scenario, x, ...each }) => {
    const path = one.paths > 1 ? `${scenario}, ` : "";
    return known(each.mean) ? `${controller}: mean ${withUnit(x, scale)}, 95 % interval ${interval(each, scale)}`
      : `${controller}, ${path}trial ${trial}, seed ${seed}, ${state.role} ${viewer ?? ""}: ${withUnit(x, scale)}`;
  };
  const box = element("div", { className: "chart", style: `height: ${summaries.length * 40 + 50}px` });
  const readout = element("output", {}, "Point at a dot to see its trial.");
  byId("metric-view").append(element("div", {}, element("h3", {}, headed(metric.label, scale)), box, readout));
  const shared = chartOptions(scale, scale);
  const longest = Math.max(...summaries.map(({ controller }) => controller.length));
  charts.push(new Dygraph(box, points.map(({ x, mean = null, trialY = null }) => [x, mean, trialY]), {
    ...shared, labels: ["value", "mean", "trial"], dateWindow: [from - gap, to + gap],
    valueRange: [0.4 - summaries.length, 0.6],
    interactionModel: {}, highlightSeriesOpts: {}, highlightSeriesBackgroundAlpha: 1,
    axes: { x: shared.axes.x, y: {
      axisLabelFontSize: 13, drawGrid: false, axisLabelWidth: Math.min(longest * 8, box.clientWidth * 0.35),
      ticker: () => [...places].map(([name, v]) => ({ v, label: element("i", {}, name).innerHTML })),
    } },
    plotter: ({ drawingContext, dygraph, setName, points: drawn }) => {
      if (setName === "mean") drawIntervals(drawingContext, dygraph);
      for (const { idx, yval, canvasx, canvasy } of drawn) {
        if (known(yval)) dot(drawingContext, points[idx], canvasx, canvasy, points[idx].trialY ? 4 : 6);
      }
    },
    drawHighlightPointCallback: (chart, name, pen, x, y, colour, radius, idx) => dot(pen, points[idx], x, y, 8),
    highlightCallback: (event, x, selected, row) => { readout.textContent = describe(points[row]); },
  }));
}

/** Mean over time, smallest and largest of a line from `from` to `to`; a sample counts until the next. */
function statistics(line, [from, to]) {
  const { t, v } = line;
  let [min, max] = [NaN, NaN];
  for (let index = Math.max(indexAt(t, from), 0); t[index] <= to; index += 1) {
    [min, max] = [v[index] >= min ? min : v[index], v[index] <= max ? max : v[index]];
  }
  const [begin, end] = [Math.max(from, t[0]), Math.min(to, t.at(-1))];
  return [end > begin ? (sumUntil(line, end) - sumUntil(line, begin)) / (end - begin) : min, min, max];
}

/** Sum of value × time over all samples up to a time, also those that the points leave out. */
function sumUntil({ t, sum }, at) {
  const index = Math.max(indexAt(t, at), 0);
  const width = t[index + 1] - t[index];
  return width > 0 ? sum[index] + (sum[index + 1] - sum[index]) * (at - t[index]) / width : sum[index];
}

/** Rows of a time and a value for each line: all samples, or the extremes of bins near the time shown. */
function chartRows(lines) {
  const empty = (at) => [at, ...lines.map(() => null)];
  const rows = new Map(time.whole.map((at) => [at, empty(at)]));
  const put = (at, line, value) => {
    if (!rows.has(at)) rows.set(at, empty(at));
    rows.get(at)[line + 1] = value;
  };
  const few = new Set(lines.flatMap(({ t }) => t)).size <= MOST_ROWS;
  const length = time.shown[1] - time.shown[0];
  const [from, to, width] = [time.shown[0] - length, time.shown[1] + length, length / BINS];
  for (const [line, { t, v }] of lines.entries()) {
    if (few) t.forEach((at, index) => put(at, line, v[index]));
    for (let index = Math.max(indexAt(t, from), 0); !few && t[index] <= to;) {
      const start = Math.floor(t[index] / width) * width;
      let [low, high] = [index, index];
      do {
        if (v[index] < v[low] || Number.isNaN(v[low])) low = index;
        if (v[index] > v[high] || Number.isNaN(v[high])) high = index;
        index += 1;
      } while (t[index] < start + width);
      put(start, line, v[Math.min(low, high)]);
      put(start + width / 2, line, v[Math.max(low, high)]);
    }
  }
  return [...rows.values()].sort((a, b) => a[0] - b[0]);
}

/** Shows a part of the whole time in all curves. */
function showTime([from, to]) {
  const [first, last] = time.whole;
  const length = Math.min(Math.max(to - from, (last - first) / 1e5), last - first);
  const start = Math.min(Math.max(from, first), last - length);
  time.shown = length > 0.995 * (last - first) ? time.whole : [start, start + length];
  for (const chart of charts) chart.showTime?.();
}

/** Magnifies the time by `factor`, and moves it by the share `move`. */
function zoom(factor, move = 0) {
  const [from, to] = time.shown;
  const [middle, half] = [(from + to) / 2 + move * (to - from), (to - from) / 2 / factor];
  showTime([middle - half, middle + half]);
}

// Key, label and name of each button, and its action.
const TOOLS = [["+", "+", "Zoom in", () => zoom(2)], ["-", "−", "Zoom out", () => zoom(0.5)],
  ["ArrowLeft", "◀", "Earlier", () => zoom(1, -0.2)], ["ArrowRight", "▶", "Later", () => zoom(1, 0.2)],
  ["0", "Whole", "Show the whole time", () => showTime(time.whole)]];

function pressed(event) {
  const tool = TOOLS.find(([key]) => key === (event.key === "=" ? "+" : event.key));
  if (!tool || event.ctrlKey || event.altKey || event.metaKey) return;
  event.preventDefault();
  tool[3]();
}

/** dygraphs' own interactions, but one finger moves the chart sideways only, so that it can still scroll the page. */
function interactions(point) {
  const { touchstart, touchmove, touchend, ...others } = Dygraph.defaultInteractionModel;
  const begin = (event, chart, context) => {
    // The listener is passive; `touch-action` in the style sheet says what the browser may do.
    touchstart({ touches: event.touches, preventDefault: () => {} }, chart, context);
    if (event.touches.length === 1) context.touchDirections = { x: time.shown !== time.whole, y: false };
  };
  return {
    ...others,
    touchstart: begin,
    touchmove: (event, chart, context) => {
      if (event.touches.length > 1 || context.touchDirections.x) touchmove(event, chart, context);
      else point(chart.toDataXCoord(event.touches[0].clientX - event.target.getBoundingClientRect().left));
    },
    touchend: (event, ...rest) => (event.touches.length ? begin : touchend)(event, ...rest),
  };
}

/** The lines of a curve that are chosen, with their names and styles. */
function chosenLines(curve) {
  const [shown, flows] = [shownControllers(), [...new Set(curve.lines.map(({ flow }) => flow))]];
  const isChosen = ({ controller, flow, trial }) => shown.includes(controller)
    && ["", flow].includes(state.flow) && ["", String(trial)].includes(state.trial);
  return curve.lines.filter(isChosen).map((line) => {
    const parts = [line.controller, flows.length > 1 && line.flow, state.trial === "" && `trial ${line.trial}`];
    return { ...line, name: parts.filter(Boolean).join(", "), variant: state.flow ? 0 : flows.indexOf(line.flow) };
  });
}

function drawCurve(curve) {
  const lines = chosenLines(curve);
  if (!lines.length) return;
  const scale = scaleOf(curve.unit, lines.flatMap(({ v }) => v));
  const box = element("div", { className: "chart curve", tabIndex: 0, role: "group", "aria-describedby": "curve-help",
    "aria-label": `Chart of ${curve.label}. The table after it has the numbers.`, onkeydown: pressed });
  const tools = TOOLS.map(([, label, title, onclick]) =>
    element("button", { type: "button", title, "aria-label": title, onclick }, label));
  const readout = element("output", {}, "Point at the chart to see values.");
  const part = element("p", { className: "note" });
  const numbers = table(`${curve.label}: numbers of each line`,
    ["Line", headed("Mean", scale), "Smallest", "Largest", "At the pointer"],
    lines.map(({ controller, name, variant }) => [named(controller, name, variant), "", "", "", ""]));
  const bodies = [...numbers.querySelectorAll("tbody tr")];
  const link = csvLink("Points of this chart (CSV)", `${one.name}-${curve.quantity}.csv`, () => [
    ["controller", "flow", "trial", "time (s)", `${curve.quantity} (${curve.unit})`],
    ...curve.lines.flatMap(({ controller, flow, trial, t, v }) =>
      t.map((at, index) => [controller, flow, trial, at, known(v[index]) ? v[index] : ""]))]);
  byId("curves").append(element("figure", {}, element("div", { className: "head" },
    element("h3", {}, headed(curve.label, scale)), element("p", { className: "buttons" }, ...tools)),
  element("div", { className: "pair" }, element("div", {}, box, readout), element("div", {}, part, numbers, link))));

  const point = (at, series) => {
    const values = lines.map(({ t, v }) => v[indexAt(t, at)]);
    bodies.forEach((row, index) => { row.lastChild.textContent = text(values[index], scale); });
    const index = lines.length === 1 ? 0 : labels.indexOf(series) - 1;
    const value = index >= 0 ? `: ${lines[index].name}, ${withUnit(values[index], scale)}` : "";
    readout.textContent = `At ${withUnit(at, SECONDS)}${value}`;
  };
  const labels = ["time", ...lines.map((line, index) => `line ${index}`)];
  const showNumbers = () => {
    bodies.forEach((row, index) => statistics(lines[index], time.shown).forEach((value, cell) => {
      row.cells[cell + 1].textContent = text(value, scale);
    }));
    const [from, to] = time.shown.map((at) => withUnit(at, SECONDS));
    part.textContent = time.shown === time.whole ? "Over the whole time:" : `From ${from} to ${to}:`;
  };
  let timer = 0;
  const chart = new Dygraph(box, chartRows(lines), {
    ...chartOptions(SECONDS, scale), labels, xlabel: "Time (s)", connectSeparatedPoints: true, includeZero: true,
    series: Object.fromEntries(lines.map((line, index) => [labels[index + 1], style(line.controller, line.variant)])),
    dateWindow: time.shown, interactionModel: interactions(point), strokeWidth: lines.length > 16 ? 1 : 1.6,
    highlightSeriesOpts: { strokeWidth: 2.6 },
    highlightCallback: (event, at, points, row, series) => point(at, series),
    drawCallback: (drawn, first) => {
      clearTimeout(timer);
      const range = drawn.xAxisRange();
      if (first || range.every((at, end) => at === time.shown[end])) return;
      timer = setTimeout(() => charts.includes(drawn) && showTime(range), 150);
    },
  });
  bodies.forEach((row, index) => {
    row.onmouseenter = () => chart.setSelection(0, labels[index + 1]);
    row.onmouseleave = () => chart.clearSelection();
  });
  chart.showTime = () => {
    if (time.shown === time.whole) chart.resetZoom();
    chart.updateOptions({ file: chartRows(lines), dateWindow: time.shown });
    showNumbers();
  };
  charts.push(chart);
  showNumbers();
}

function draw() {
  for (const chart of charts) chart.destroy();
  charts = [];
  drawMetric();
  byId("curves").replaceChildren();
  one.curves.forEach(drawCurve);
  if (!byId("curves").childElementCount) {
    byId("curves").append(one.curves.length ? "No chosen controller has a curve." : "This case has no curves.");
  }
}

function chooseMetric() {
  const own = one.summaries.filter(({ metric }) => metric === state.metric);
  fillList("role", [...new Set(own.map(({ role }) => role))].map((role) => [role, role]), "viewer");
  draw();
}

function showCase() {
  one = cases.find(({ name }) => name === state.case);
  palette = css("--lines").split(/\s+/);
  byId("name").textContent = one.name;
  byId("about").textContent = one.about;
  byId("controllers").replaceChildren(...one.controllers.map((value) => {
    const box = { type: "checkbox", name: "controller", value, checked: !state.without.has(value) };
    return element("label", {}, element("input", box), named(value));
  }));
  const present = new Set(one.summaries.map(({ metric }) => metric));
  const rank = ({ name }) => (FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length);
  const metrics = results.metrics.filter(({ name }) => present.has(name)).sort((a, b) => rank(a) - rank(b));
  fillList("metric", metrics.map(({ name, label }) => [name, label]));
  const lines = one.curves.flatMap((curve) => curve.lines);
  const listed = (values) => [...(values.size > 1 ? [["", "All"]] : []), ...[...values].map((value) => [value, value])];
  const trials = new Set(lines.map(({ trial }) => String(trial)));
  fillList("flow", listed(new Set(lines.map(({ flow }) => flow))));
  fillList("trial", listed(trials), [...trials][0]);
  const ends = lines.flatMap(({ t }) => [t[0], t.at(-1)]).filter(known);
  time.whole = time.shown = ends.length ? [Math.min(...ends), Math.max(...ends)] : [0, 1];
  byId("curve-help").hidden = !lines.length;
  const names = results.metrics.map(({ name }) => name).filter((name) => one.rows.some(({ values }) => name in values));
  const columns = ["scenario", "controller", "trial", "seed", "role", "viewer"];
  const cells = (row) => [...columns.map((column) => row[column]), ...names.map((name) => row.values[name])];
  byId("rows-link").replaceChildren(csvLink("All rows of this case (CSV)", `${one.name}-rows.csv`,
    () => [[...columns, ...names], ...one.rows.map(cells)]));
  chooseMetric();
}

function start() {
  document.title = byId("title").textContent = results.title ?? "Results of the lab";
  const facts = [["Cases", cases.length], ["controllers", controllers.length],
    ["rows of results", cases.flatMap(({ rows }) => rows).length], ["version of playrate", results.program]];
  byId("summary").textContent = `${facts.map(([name, value]) => `${name}: ${value}`).join("; ")}.`;
  const [headline = "", ...reasons] = results.explanation ?? [];
  byId("explanation").append(element("strong", {}, headline),
    element("ul", {}, ...reasons.map((reason) => element("li", {}, reason))));
  byId("page").hidden = !cases.length;
  if (!cases.length) return;
  const lines = cases.flatMap(({ curves }) => curves.flatMap((curve) => curve.lines));
  for (const line of lines) line.v = line.v.map((value) => value ?? NaN);
  fillList("case", cases.map(({ name }) => [name, name]));
  byId("page").onchange = ({ target: { id, name, type, value, checked } }) => {
    if (name === "controller") state.without[checked ? "delete" : "add"](value);
    else state[id] = type === "checkbox" ? checked : value;
    ({ case: showCase, metric: chooseMetric }[id] ?? draw)();
  };
  const tick = (without) => () => {
    state.without = new Set(without);
    showCase();
  };
  byId("all").onclick = tick([]);
  byId("none").onclick = tick(controllers);
  matchMedia("(prefers-color-scheme: dark)").onchange = showCase;
  showCase();
}

start();
