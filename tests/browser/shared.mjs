// Several viewers with dash.js who share one path: what each of them saw, how much of the time it stalled, and why.
//
//     node tests/browser/shared.mjs [--viewers 5] [--seconds 200] [--fps 24] [--dashjs FILE] [--settings JSON] \
//         VIDEO-SERVER RELAY NAME ROUNDS 'rate=10Mbit/s rtt=40ms queue=1bdp' cwv=SPEC new-cwv=SPEC
//
// The viewers are pages of one Chromium, each in a browser context of its own and therefore with a connection of its
// own, who join within 3 s of each other; in round I with the same pauses for each controller. Runs are added to
// target/browser/NAME-shared.jsonl, and what of the rounds is there is not made again.
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { once } from 'node:events';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { launch, newPage } from './browser.mjs';
import { paddedSite, RATES, SEGMENT } from './padded.mjs';
import { kept, median, needTools, relay, videoServer } from './support.mjs';

const SPREAD = 3000; // ms within which the viewers join
// A run does not count if the machine was busier (share of all processors), if timers of a page came later (ms), if
// more of the relay's datagrams were late (share), or if more frames were dropped (share).
const MOST = { busy: 0.9, timer: 500, datagrams: 0.001, dropped: 0.05 };

const installed = 'node_modules/dashjs/dist/modern/umd/dash.all.min.js';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    viewers: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '200' },
    fps: { type: 'string', default: '24' },
    dashjs: { type: 'string', default: path.join(import.meta.dirname, installed) },
    settings: { type: 'string', default: '{}' },
  },
});
const [program, relayProgram, name, rounds, through, ...specs] = positionals;
const [viewers, seconds, fps] = [values.viewers, values.seconds, values.fps].map(Number);
const numbers = Number(rounds) >= 0 && viewers > 0 && seconds > 0 && fps > 0;
if (!numbers || specs.length === 0 || !specs.every((spec) => spec.includes('='))) {
  console.error(
    'usage: node tests/browser/shared.mjs [--viewers N] [--seconds S] [--fps N] [--dashjs FILE] [--settings JSON] '
      + "VIDEO-SERVER RELAY NAME ROUNDS 'KEY=VALUE …' ARM=SPEC…",
  );
  process.exit(2);
}
needTools(['ffmpeg', '-version'], [process.env.CHROMIUM || 'chromium', '--version']);
const log = path.join(kept, `${name}-server.jsonl`);
const results = path.join(kept, `${name}-shared.jsonl`);
const text = (file) => (existsSync(file) ? readFileSync(file, 'utf8') : '');
const lines = (file) => text(file).split('\n').filter(Boolean).map((line) => JSON.parse(line));
const arms = specs.map((spec) => spec.slice(0, spec.indexOf('=')));
const total = (list) => list.reduce((sum, value) => sum + value, 0);
const mean = (list) => total(list) / list.length;

// Numbers from 0 to 1 that follow from a seed (mulberry32).
function random(seed) {
  let state = seed * 0x9e3779b9;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

// The time of all processors since the machine started, and what of it they worked: for work that gives way (nice), and
// for all other, with what a hypervisor took away.
function processors() {
  const times = readFileSync('/proc/stat', 'utf8').split('\n')[0].trim().split(/\s+/).slice(1, 9).map(Number);
  const [, nice, , idle, waiting] = times;
  return { all: total(times), nice, busy: total(times) - nice - idle - waiting };
}

// The share of the playing time that each representation was shown: a segment that comes again replaces what is not
// shown yet of the one before.
function shown(whole, played) {
  const time = Object.fromEntries(Object.keys(RATES).map((id) => [id, 0]));
  const known = new Map();
  for (const { id, number, position } of whole) {
    const [begin, end] = [(number - 1) * SEGMENT, Math.min(number * SEGMENT, played)];
    const from = Math.max(begin, Math.min(position, end));
    const before = known.get(number);
    if (before) {
      time[before] -= end - from;
    }
    time[id] += end - (before ? from : begin);
    known.set(number, id);
  }
  return Object.fromEntries(Object.entries(time).map(([id, sum]) => [id, sum / played]));
}

// What a viewer saw, in seconds and kbit/s.
function seen(facts, resources) {
  const media = resources.filter(({ url }) => url.includes('/seg-'));
  const last = facts.samples.at(-1) ?? { time: facts.joined, position: 0 };
  const over = facts.ended ?? last.time;
  // At the end of the title nothing is waited for.
  const stalls = facts.stalls.filter(({ lasted }) => lasted !== null || facts.ended === null);
  const stalled = total(stalls.map(({ lasted, since }) => lasted ?? over - since)) / 1000;
  const played = facts.ended === null ? last.position : facts.duration;
  const whole = facts.requests.filter(({ done, failed }) => done !== null && !failed);
  const changed = facts.requests.slice(1).filter(({ id }, at) => id !== facts.requests[at].id).length;
  const first = new Set();
  const again = facts.requests.filter(({ number }) => first.size === first.add(number).size);
  // Until the last segment was there: afterwards the buffer must run empty.
  const until = Math.max(...whole.map(({ done }) => done));
  const levels = facts.samples.filter(({ time, kbps }) => time > facts.firstFrame + 6000 && time < until && kbps > 0);
  const wall = (over - facts.firstFrame) / 1000;
  return {
    start: (facts.firstFrame - facts.joined) / 1000, played, wall, stalls: stalls.length, stalled,
    ratio: stalled / (played + stalled), standing: 1 - played / wall,
    requests: facts.requests.length, switches: changed, again: again.length,
    failed: facts.requests.filter(({ failed }) => failed).length,
    shares: shown(whole, played),
    estimate: mean(levels.map(({ kbps }) => kbps)), least: Math.min(...levels.map(({ ahead }) => ahead)),
    instant: median(media.map(({ bytes, ms, firstByte }) => (bytes * 8) / Math.max(ms - firstByte, 1))),
  };
}

async function watched(page) {
  const facts = await page.evaluate(() => window.facts);
  const resources = await page.evaluate(() => performance.getEntriesByType('resource').map((entry) => ({
    url: entry.name, protocol: entry.nextHopProtocol, start: entry.startTime, ms: entry.duration,
    firstByte: entry.responseStart - entry.startTime, bytes: entry.encodedBodySize,
  })));
  return { facts, resources };
}

async function open(browser, origin) {
  const page = await newPage(await browser.createBrowserContext(), { width: 200, height: 120 });
  await page.goto(`${origin}/shared.html`, { timeout: 60_000 });
  return page;
}

// Reasons for which a run does not count.
function flaws(run, viewings, media) {
  const [, late] = run.path.match(/; (\d+) datagrams by more than/) ?? [0, Infinity];
  const [, datagrams] = run.path.match(/server to clients: (\d+) of/) ?? [0, 0];
  const lost = run.path.match(/not valid: .*(kernel|memory).*/);
  const film = viewings.flatMap(({ resources }) => resources.filter(({ url }) => url.startsWith(media)));
  const found = [
    [run.connections !== viewers, `${run.connections} connections`],
    [film.some(({ protocol }) => protocol !== 'h3'), 'not everything over HTTP/3'],
    [run.busy > MOST.busy, `processors busy ${(100 * run.busy).toFixed(0)} %`],
    [run.timer > MOST.timer, `timers late by up to ${run.timer.toFixed(0)} ms`],
    [run.dropped > MOST.dropped, `${(100 * run.dropped).toFixed(0)} % of a viewer's frames dropped`],
    [Number(late) > MOST.datagrams * Number(datagrams), `${late} datagrams late`],
    [Boolean(lost), lost?.[0]],
    ...viewings.map(({ facts }) => [facts.errors.length > 0, facts.errors[0]]),
    ...viewings.map(({ facts }) => [facts.ended === null, 'did not reach the end']),
  ];
  return found.filter(([is]) => is).map(([, why]) => why);
}

async function view(server, arm, round) {
  const before = lines(log).length;
  const between = relay(relayProgram, server.port, through, round);
  const media = `https://localhost:${await between.listening()}`;
  const origin = `https://localhost:${server.port}`;
  const browser = await launch([origin, media].map((each) => new URL(each).host), server.pin);
  let viewings;
  const draw = random(round);
  const joins = Array.from({ length: viewers }, () => draw() * SPREAD);
  const start = processors();
  let end;
  try {
    const pages = await Promise.all(joins.map(() => open(browser, origin)));
    await Promise.all(pages.map(async (page, at) => {
      await pause(joins[at]);
      const manifest = `${media}/${arm}/film/manifest.mpd`;
      await page.evaluate(([of, settings]) => window.join(of, settings), [manifest, JSON.parse(values.settings)]);
      const over = () => window.facts.ended !== null || window.facts.errors.length > 0;
      // Whoever is not at the end by then has stalled for a third of the time.
      await page.waitForFunction(over, { timeout: 1500 * seconds + 20_000, polling: 500 }).catch(() => {});
    }));
    end = processors();
    viewings = await Promise.all(pages.map(watched));
  } finally {
    await browser.close();
  }
  // So that the server sees the connections close.
  await pause(1000);
  const relayed = await between.stop();
  const said = lines(log).slice(before);
  // Those that asked for the title: the pages' connections have no arm.
  const sessions = said.filter(({ message, arm: of }) => message === 'session finished' && of === arm);
  const run = {
    arm, round, at: new Date().toISOString(), player: viewings[0].facts.player, settings: values.settings, joins,
    connections: said.filter(({ message }) => message === 'an arm was chosen').length,
    lost: total(sessions.map((one) => one.lost_packets)) / total(sessions.map((one) => one.sent_packets)),
    busy: (end.busy - start.busy) / (end.all - start.all), nice: (end.nice - start.nice) / (end.all - start.all),
    timer: Math.max(...viewings.map(({ facts }) => facts.late)),
    dropped: Math.max(...viewings.map(({ facts }) => facts.dropped / Math.max(facts.frames, 1))),
    path: relayed,
    viewers: viewings.map(({ facts, resources }) => seen(facts, resources)),
  };
  return { ...run, flaws: flaws(run, viewings, media), viewings };
}

if (Number(rounds) > 0) {
  const site = path.join(kept, `padded-${seconds}-${fps}`);
  paddedSite(site, { seconds, fps, dashjs: values.dashjs });
  const server = await videoServer(
    program,
    [
      '--media', site, '--log-format', 'json', '--cors', '*',
      '--choose-by', 'path', ...specs.flatMap((spec) => ['--arm', spec]),
    ],
    { log, filter: 'info,video_server=debug' },
  );
  for (let round = 1; round <= Number(rounds); round += 1) {
    for (let turn = 0; turn < arms.length; turn += 1) {
      const arm = arms[(round + turn) % arms.length];
      if (!lines(results).some((run) => run.arm === arm && run.round === round && run.flaws.length === 0)) {
        const run = await view(server, arm, round);
        appendFileSync(results, `${JSON.stringify(run)}\n`);
        console.error(JSON.stringify({ ...run, viewings: undefined }));
      }
    }
  }
  const ended = once(server.child, 'close');
  server.child.kill();
  await ended;
}

// Of a viewer who saw nothing there are no figures.
const fixed = (value, digits) => (Number.isFinite(value) ? value.toFixed(digits) : '–');
const head = [
  'controller', 'round', 'viewer', 'rebuffering ratio', 'stalls', 'stalled, s', 'switches', 'requested again',
  'lowest buffer, s', 'estimate, Mbit/s', 'time by representation', 'valid',
];
console.log(`| ${head.join(' | ')} |\n|${'---|'.repeat(head.length)}`);
for (const [index, arm] of arms.entries()) {
  for (const run of lines(results).filter((one) => one.arm === arm)) {
    for (const [viewer, own] of run.viewers.entries()) {
      const shares = Object.keys(RATES).map((id) => `${id} ${fixed(100 * own.shares[id], 0)} %`);
      const cells = [
        `\`${specs[index].slice(arm.length + 1)}\``, run.round, viewer + 1, `${fixed(100 * own.ratio, 1)} %`,
        own.stalls, fixed(own.stalled, 1), `${own.switches} of ${own.requests}`, own.again, fixed(own.least, 1),
        fixed(own.estimate / 1000, 2), shares.join(', '), run.flaws.join('; ') || 'yes',
      ];
      console.log(`| ${cells.join(' | ')} |`);
    }
  }
}
process.exit(0);
