// Compares controllers under dash.js, or hls.js: viewers in Chromium, one after the other and each in a browser started for it, watch the same film over
// the same path, from one server that has an arm for each controller.
//
//     node tests/browser/compare.mjs [--player hls] VIDEO-SERVER RELAY NAME ROUNDS 'rate=5Mbit/s rtt=80ms loss=1%' cubic=cubic 'ccp=ccp+start=video-ssthresh'
//
// The path is as the example `relay` of playrate-netsim takes it; round I has seed I. What viewers saw is added to target/browser/NAME-viewings.jsonl
// and the server's log to NAME-server.jsonl, and what of the rounds is there is not made again; the table is over all that are there.
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { once } from 'node:events';
import path from 'node:path';
import { kept, needTools, play, quartiles, relay, site, videoServer } from './support.mjs';

const SECONDS = 60;
const args = process.argv.slice(2);
const player = args[0] === '--player' ? args.splice(0, 2)[1] : 'dash';
const manifest = { dash: 'manifest.mpd', hls: 'master.m3u8' }[player];
const [program, relayProgram, name, rounds, through, ...specs] = args;
if (!manifest || specs.length === 0 || !specs.every((spec) => spec.includes('=')) || !(Number(rounds) >= 0)) {
  console.error("usage: node tests/browser/compare.mjs [--player dash|hls] VIDEO-SERVER RELAY NAME ROUNDS 'KEY=VALUE …' ARM=SPEC…");
  process.exit(2);
}
needTools(['ffmpeg', '-version'], [process.env.CHROMIUM || 'chromium', '--version']);
const viewings = path.join(kept, `${name}-viewings.jsonl`);
const rows = () => (existsSync(viewings) ? readFileSync(viewings, 'utf8').trim().split('\n').map(JSON.parse) : []);
const seen = (arm) => rows().filter((row) => row.arm === arm && (row.player ?? 'dash') === player && !row.failed);
const arms = specs.map((spec) => spec.slice(0, spec.indexOf('=')));

// Of the pictures, by playing time.
function meanRate({ representations, duration }) {
  const ends = [...representations.slice(1).map(({ at }) => at), duration];
  const begins = representations.map(({ at }, index) => (index === 0 ? 0 : at));
  return representations.reduce((sum, { kbps }, index) => sum + kbps * (ends[index] - begins[index]), 0) / duration;
}

async function view(server, arm, seed) {
  const between = relay(relayProgram, server.port, through, seed);
  const media = `https://localhost:${await between.listening()}`;
  // The page comes past the path: a viewer's connection for the film begins with the manifest.
  const { facts, requests, browser } = play({
    origin: `https://localhost:${server.port}`, quicOrigins: [media], pin: server.pin, seconds: 4 * SECONDS,
    query: { player, manifest: `${media}/${arm}/film/${manifest}`, cmcd: 'query' },
    screenshots: path.join(kept, 'screenshots'), name: `${name}-${arm}-${seed}`,
  });
  const path_ = await between.stop();
  const film = requests.filter(({ url }) => url.startsWith(media));
  if (film.some(({ protocol }) => protocol !== 'h3')) {
    throw new Error(JSON.stringify(film));
  }
  if (facts.errors.length > 0 || !facts.ended) {
    return { arm, seed, player, failed: facts.errors, position: facts.position };
  }
  return {
    arm, seed, player, browser, start: facts.firstFrame - facts.scriptLoaded, stalls: facts.stalls, representations: facts.representations,
    switches: facts.representations.length - 1, kbps: meanRate(facts), requests: film.length, dropped: facts.dropped / facts.frames, path: path_,
  };
}

if (Number(rounds) > 0) {
  const media = site('long', SECONDS);
  const server = await videoServer(
    program,
    ['--media', media, '--log-format', 'json', '--cors', '*', '--choose-by', 'path', ...specs.flatMap((spec) => ['--arm', spec])],
    { log: path.join(kept, `${name}-server.jsonl`), filter: 'info,video_server=debug' },
  );
  for (let seed = 1; seed <= Number(rounds); seed += 1) {
    for (let turn = 0; turn < arms.length; turn += 1) {
      const arm = arms[(seed + turn) % arms.length];
      // A player that gave up is tried once more.
      for (let tries = 0; tries < 2 && !seen(arm).some((row) => row.seed === seed); tries += 1) {
        const row = await view(server, arm, seed);
        appendFileSync(viewings, `${JSON.stringify(row)}\n`);
        console.error(JSON.stringify({ ...row, representations: row.representations?.map(({ at, height }) => `${at.toFixed(0)}s ${height}`) }));
      }
    }
  }
  const ended = once(server.child, 'close');
  server.child.kill();
  await ended;
}

console.log('| controller | first frame, s | stalls | stalled, s | switches | mean rate of pictures, kbit/s |\n|---|---|---|---|---|---|');
for (const [index, arm] of arms.entries()) {
  const viewed = seen(arm);
  // A player that waits with more in its buffer than this waits for its decoder.
  const stalls = viewed.map((row) => row.stalls.filter(({ ahead }) => ahead < 0.5));
  const total = (values) => values.reduce((sum, value) => sum + value, 0);
  const cells = [
    quartiles(viewed.map((row) => row.start / 1000), 1),
    stalls.map((list) => list.length).join(', '),
    stalls.map((list) => (total(list.map(({ lasted }) => lasted ?? 0)) / 1000).toFixed(1)).join(', '),
    viewed.map((row) => row.switches).join(', '),
    quartiles(viewed.map((row) => row.kbps)),
  ];
  console.log(`| \`${specs[index].slice(arm.length + 1)}\` | ${cells.join(' | ')} |`);
}
const failed = rows().filter((row) => row.failed);
if (failed.length > 0) {
  console.log(`\n${failed.length} viewings ended early: ${failed.map(({ arm, failed: [error] }) => `${arm}: ${error}`).join('; ')}`);
}
process.exit(0);
