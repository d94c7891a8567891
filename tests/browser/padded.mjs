// A title whose segments are as large as those of a real one, and whose video costs hardly anything to decode, so that
// several players on one machine wait for the path and not for a processor.
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const here = import.meta.dirname;
export const SEGMENT = 3; // s
// The rates of P21, in bit/s.
export const RATES = { '480p': 440_000, '720p': 2_640_000, '1080p': 4_820_000 };

// The sizes of so many segments of Big Buck Bunny at each rate: those that the scenario p21-dash has, which are the
// sizes of the encode whose rate is nearest, scaled to the rate, and begun again after the last.
function ladder(count) {
  const text = readFileSync(path.resolve(here, '../../assets/ladders/bbb.csv'), 'utf8');
  const rows = text.trim().split('\n').filter((line) => !line.startsWith('#')).map((line) => line.split(','));
  if (Number(rows[0][1]) !== SEGMENT) {
    throw new Error(`bbb.csv: expected segments of ${SEGMENT} s, got ${rows[0][1]} s`);
  }
  const encodes = rows[1].slice(1).map((kbps) => Number(kbps) * 1000);
  const scaled = (rate) => {
    const apart = (other) => Math.max(rate, other) / Math.min(rate, other);
    const column = 1 + encodes.reduce((best, other, at) => (apart(other) < apart(encodes[best]) ? at : best), 0);
    const real = Array.from({ length: count }, (_, at) => Number(rows[2 + (at % (rows.length - 2))][column]));
    const factor = (rate * SEGMENT * count) / 8 / real.reduce((sum, size) => sum + size, 0);
    return real.map((size) => Math.round(size * factor));
  };
  return Object.entries(RATES).map(([id, rate]) => ({ id, rate, sizes: scaled(rate) }));
}

// A segment with a `free` box behind it, which players skip, so that it has `size` bytes.
function padded(segment, size) {
  const rest = size - segment.length;
  if (rest < 8) {
    throw new Error(`a segment of ${segment.length} bytes cannot be padded to ${size}`);
  }
  const box = Buffer.alloc(rest);
  box.writeUInt32BE(rest, 0);
  box.write('free', 4, 'latin1');
  return Buffer.concat([segment, box]);
}

function manifest(representations, codecs, count) {
  const one = ({ id, rate }) => `
      <Representation id="${id}" bandwidth="${rate}" width="160" height="90"/>`;
  return `<?xml version="1.0" encoding="utf-8"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" profiles="urn:mpeg:dash:profile:isoff-live:2011" type="static"
    mediaPresentationDuration="PT${count * SEGMENT}S" minBufferTime="PT${SEGMENT}S">
  <Period>
    <AdaptationSet mimeType="video/mp4" codecs="${codecs}" segmentAlignment="true" startWithSAP="1">
      <SegmentTemplate initialization="init-$RepresentationID$.mp4" media="seg-$RepresentationID$-$Number$.m4s"
          timescale="1" duration="${SEGMENT}" startNumber="1"/>${representations.map(one).join('')}
    </AdaptationSet>
  </Period>
</MPD>
`;
}

// Makes the directory `site` to serve: the page, dash.js from the file `dashjs`, and such a title of so many seconds with
// `fps` frames a second.
export function paddedSite(site, { seconds, fps, dashjs }) {
  const film = path.join(site, 'film');
  mkdirSync(film, { recursive: true });
  for (const name of ['shared.html', 'shared.js', 'video.js']) {
    copyFileSync(path.join(here, 'page', name), path.join(site, name));
  }
  copyFileSync(dashjs, path.join(site, 'dash.js'));
  if (existsSync(path.join(film, 'manifest.mpd'))) {
    return;
  }
  const count = Math.ceil(seconds / SEGMENT);
  const plain = path.join(site, 'plain');
  mkdirSync(plain, { recursive: true });
  const group = String(SEGMENT * fps);
  execFileSync('ffmpeg', [
    '-v', 'error', '-y', '-stream_loop', '-1', '-i', path.resolve(here, '../../assets/title-720p.mp4'), '-an',
    '-vf', `scale=160:90,fps=${fps}`, '-c:v', 'libx264', '-preset', 'veryfast', '-profile:v', 'main', '-pix_fmt', 'yuv420p',
    '-b:v', '30k', '-maxrate', '60k', '-bufsize', '60k', '-g', group, '-keyint_min', group, '-sc_threshold', '0',
    '-t', String(count * SEGMENT), '-f', 'dash', '-seg_duration', String(SEGMENT), '-use_timeline', '0',
    '-init_seg_name', 'init.mp4', '-media_seg_name', 'seg-$Number$.m4s', path.join(plain, 'manifest.mpd'),
  ], { stdio: 'inherit' });
  const [, codecs] = readFileSync(path.join(plain, 'manifest.mpd'), 'utf8').match(/codecs="([^"]+)"/);
  const representations = ladder(count);
  for (const { id, sizes } of representations) {
    copyFileSync(path.join(plain, 'init.mp4'), path.join(film, `init-${id}.mp4`));
    sizes.forEach((size, at) => {
      const segment = readFileSync(path.join(plain, `seg-${at + 1}.m4s`));
      writeFileSync(path.join(film, `seg-${id}-${at + 1}.m4s`), padded(segment, size));
    });
  }
  rmSync(plain, { recursive: true });
  // Last, so that a title that is there is whole.
  writeFileSync(path.join(film, 'manifest.mpd'), manifest(representations, codecs, count));
}
