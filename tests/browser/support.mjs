// What the measurements have in common: a server, the browser, and figures of several runs.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';

const here = import.meta.dirname;
export const kept = path.resolve(here, '../../target/browser');

// A directory that is gone in the end, as are all processes.
export const directory = mkdtempSync(path.join(tmpdir(), 'browser-'));
const children = [];
process.on('exit', () => {
  children.forEach((child) => child.kill());
  rmSync(directory, { recursive: true, force: true });
});
['SIGINT', 'SIGTERM'].forEach((signal) => process.on(signal, () => process.exit(1)));

// Says loudly that nothing is measured, and why; with PLAYRATE_REQUIRE_TOOLS set that is a failure.
export function needTools(...tools) {
  const missing = tools.filter(([tool, version]) => spawnSync(tool, [version]).error).map(([tool]) => `${tool} not found on the PATH`);
  if (!existsSync(path.join(here, 'node_modules'))) {
    missing.push('the players are not there; run tests/browser/install');
  }
  if (missing.length > 0) {
    console.error(`SKIPPED: ${missing.join('; ')}`);
    process.exit(process.env.PLAYRATE_REQUIRE_TOOLS ? 1 : 0);
  }
}

export function start(command, args, options) {
  const child = spawn(command, args, options);
  child.on('error', (error) => console.error(`${command}: ${error.message}`));
  children.push(child);
  return child;
}

// The first line that matches of what a child says, as its groups.
export async function said(child, pattern) {
  for await (const line of createInterface({ input: child.stdout })) {
    const found = line.match(pattern);
    if (found) {
      return found;
    }
  }
  throw new Error(`${child.spawnfile} ended before it said ${pattern}`);
}

// A directory to serve with the page, the players and a film of so many seconds; made if it is not there.
export function site(name, seconds) {
  const wanted = path.join(kept, name);
  if (!existsSync(path.join(wanted, 'film/manifest.mpd'))) {
    execFileSync(path.join(here, 'make-site'), [wanted, String(seconds)], { stdio: 'inherit' });
  }
  return wanted;
}

// `video-server` on a free port, its log in a file if one is named.
export async function videoServer(program, args, { log, filter = 'info' } = {}) {
  const options = { stdio: ['ignore', 'pipe', log ? openSync(log, 'a') : 'ignore'], env: { ...process.env, RUST_LOG: filter } };
  const child = start(program, ['serve', '--listen', '127.0.0.1:0', '--access-log', 'none', ...args], options);
  const lines = createInterface({ input: child.stdout });
  const known = {};
  for await (const line of lines) {
    known.port ??= line.match(/^Listening on \S*:(\d+)/)?.[1];
    known.pin = line.match(/^Pin +(\S+)/)?.[1];
    if (known.pin) {
      return { ...known, child };
    }
  }
  throw new Error(`${program} ended before it listened`);
}

// A path in front of the server at `port`; `through` is as the example `relay` of playrate-netsim takes it.
// Real-time priority keeps the relay punctual beside a browser that decodes.
export function relay(program, port, through, seed) {
  const args = [program, `127.0.0.1:${port}`, ...through.split(/\s+/), `seed=${seed}`];
  const child = process.getuid() === 0 ? start('chrt', ['-r', '10', ...args]) : start(args[0], args.slice(1));
  let text = '';
  child.stdout.on('data', (data) => { text += data; });
  child.stderr.pipe(process.stderr);
  const listening = async () => {
    while (!text.includes('\n')) {
      await once(child.stdout, 'data');
    }
    return text.match(/:(\d+)\n/)[1];
  };
  const stop = async () => {
    const ended = once(child, 'close');
    child.stdin.end();
    await ended;
    return text.split('\n').slice(1).join('\n').trim();
  };
  return { listening, stop };
}

export function play(job) {
  return JSON.parse(execFileSync('node', [path.join(here, 'play.mjs')], { input: JSON.stringify(job), timeout: 240_000 }));
}

function quantile(values, share) {
  const sorted = [...values].sort((one, other) => one - other);
  const place = share * (sorted.length - 1);
  const [low, high] = [sorted[Math.floor(place)], sorted[Math.ceil(place)]];
  return low + (high - low) * (place % 1);
}

export const median = (values) => quantile(values, 0.5);

// Median and quartiles.
export function quartiles(values, digits = 0) {
  const [low, middle, high] = [0.25, 0.5, 0.75].map((share) => quantile(values, share).toFixed(digits));
  return `${middle} (${low}–${high})`;
}

// Where the median lies, at 95 %: between two of the values, by how often a coin that is thrown so often falls on one side.
export function medianWithin(values) {
  const sorted = [...values].sort((one, other) => one - other);
  const count = sorted.length;
  let [below, term, cut] = [0, 2 ** -count, 0];
  for (let k = 0; below + term <= 0.025; k += 1) {
    below += term;
    term *= (count - k) / (k + 1);
    cut = k;
  }
  return `${sorted[cut].toFixed(0)} to ${sorted[count - 1 - cut].toFixed(0)}`;
}
