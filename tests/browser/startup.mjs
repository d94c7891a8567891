// Measures how long Chromium takes to show a first frame: from `video-server` over HTTP/3 and over HTTP/2, and from nginx over HTTP/2, by turns
// on loopback, each in a browser started for it.
//
//     node tests/browser/startup.mjs VIDEO-SERVER [ROUNDS]
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createServer, connect } from 'node:net';
import { once } from 'node:events';
import { loadavg } from 'node:os';
import path from 'node:path';
import { directory, median, medianWithin, needTools, play, quartiles, site, start, videoServer } from './support.mjs';

const [program, rounds = '12'] = process.argv.slice(2);
if (!program || !(Number(rounds) > 0)) {
  console.error('usage: node tests/browser/startup.mjs VIDEO-SERVER [ROUNDS]');
  process.exit(2);
}
needTools(['nginx', '-v'], ['openssl', 'version'], ['ffmpeg', '-version'], [process.env.CHROMIUM || 'chromium', '--version']);
const media = site('site', 18);

function identity() {
  const [certificate, key] = ['cert.pem', 'key.pem'].map((name) => path.join(directory, name));
  execFileSync('openssl', [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'],
    ...['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1', '-keyout', key, '-out', certificate],
  ], { stdio: 'ignore' });
  return { certificate, key };
}

async function answers(port) {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

async function nginx({ certificate, key }) {
  const listener = createServer().listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address();
  listener.close();
  await once(listener, 'close');
  const config = path.join(directory, 'nginx.conf');
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((what) => `${what}_temp_path ${directory}/${what};`);
  writeFileSync(config, `
    daemon off; worker_processes 2; pid ${directory}/pid; error_log stderr error;
    ${process.getuid() === 0 ? 'user root;' : ''}
    events { worker_connections 256; }
    http {
      access_log off; sendfile on; tcp_nopush on; ${temporary.join(' ')}
      types { text/html html; text/javascript js; application/dash+xml mpd; video/iso.segment m4s; video/mp4 mp4; }
      server {
        listen 127.0.0.1:${port} ssl http2;
        ssl_certificate ${certificate}; ssl_certificate_key ${key}; ssl_protocols TLSv1.2 TLSv1.3;
        root ${media};
      }
    }`);
  start('nginx', ['-p', directory, '-e', 'stderr', '-c', config], { stdio: ['ignore', 'ignore', 'inherit'] });
  for (let tries = 0; tries < 100; tries += 1) {
    if (await answers(port)) {
      return port;
    }
    await new Promise((done) => setTimeout(done, 50));
  }
  throw new Error('nginx does not answer');
}

const files = identity();
const ours = await videoServer(program, ['--media', media, '--cert', files.certificate, '--key', files.key]);
const theirs = await nginx(files);
const arms = [
  { name: '`video-server`, HTTP/3', port: ours.port, quic: true, protocol: 'h3' },
  { name: 'nginx, HTTP/2', port: theirs, quic: false, protocol: 'h2' },
  { name: '`video-server`, HTTP/2', port: ours.port, quic: false, protocol: 'h2' },
].map((arm) => ({ ...arm, page: [], script: [], player: [] }));
let browser;
// The first round is thrown away: it warms the system's caches of files.
for (let round = 0; round <= Number(rounds); round += 1) {
  for (let turn = 0; turn < arms.length; turn += 1) {
    const arm = arms[(round + turn) % arms.length];
    const query = { player: 'dash', manifest: 'film/manifest.mpd', cmcd: 'no' };
    const report = play({ origin: `https://localhost:${arm.port}`, pin: ours.pin, quic: arm.quic, toTheEnd: false, query });
    const others = report.requests.filter(({ protocol }) => protocol !== arm.protocol);
    if (others.length > 0) {
      throw new Error(`${arm.name}: ${JSON.stringify(others)}`);
    }
    const { firstFrame, scriptLoaded } = report.facts;
    console.error(`${arm.name}: ${firstFrame.toFixed(0)} ms`);
    if (round > 0) {
      arm.page.push(firstFrame);
      arm.script.push(report.requests.find(({ url }) => url.endsWith('/dash.js')).ms);
      arm.player.push(firstFrame - scriptLoaded);
    }
    browser = report.browser;
  }
}
console.log(`${browser}, ${rounds} runs each by turns, load ${loadavg()[0].toFixed(1)}; ms, median (quartiles)\n`);
console.log('| from | page asked for to first frame | player there to first frame | the player itself (0.8 MB) |\n|---|---|---|---|');
for (const { name, page, script, player } of arms) {
  console.log(`| ${name} | ${quartiles(page)} | ${quartiles(player)} | ${quartiles(script)} |`);
}
const [http3, nginxHttp2] = arms;
const less = (what) => http3[what].map((ms, index) => ms - nginxHttp2[what][index]);
const compared = ['page', 'player', 'script'].map((what) => `${median(less(what)).toFixed(0)}, ${medianWithin(less(what))}`);
console.log(`| HTTP/3 less nginx in the same round: median and its 95 % interval | ${compared.join(' | ')} |`);
process.exit(0);
