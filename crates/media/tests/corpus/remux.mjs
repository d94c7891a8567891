// Remuxes with libraries of Node.js: node remux.mjs FORMAT FROM TO. They are looked for in the working directory.
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [format, from, to] = process.argv.slice(2);
const require = createRequire(`${process.cwd()}/`);
const load = async (name) => {
  const module = await import(pathToFileURL(require.resolve(name)));
  return module.default ?? module;
};
const bytes = readFileSync(from);

async function mediabunny() {
  const m = await load('mediabunny');
  const fastStart = { mediabunny: false, 'mediabunny-faststart': 'in-memory', 'mediabunny-fragments': 'fragmented' }[format];
  const Format = format === 'mediabunny-quicktime' ? m.MovOutputFormat : m.Mp4OutputFormat;
  const input = new m.Input({ source: new m.BufferSource(bytes), formats: m.ALL_FORMATS });
  const output = new m.Output({ format: new Format({ fastStart }), target: new m.BufferTarget() });
  const copies = [];
  for (const track of await input.getTracks()) {
    const isVideo = track.type === 'video';
    const codec = track.codec ?? (await track.getCodec());
    const source = isVideo ? new m.EncodedVideoPacketSource(codec) : new m.EncodedAudioPacketSource(codec);
    if (isVideo) output.addVideoTrack(source); else output.addAudioTrack(source);
    copies.push({ track, source });
  }
  await output.start();
  // Both at a time: the muxer interleaves, and waits for each track.
  await Promise.all(copies.map(async ({ track, source }) => {
    const meta = { decoderConfig: await track.getDecoderConfig() };
    for await (const packet of new m.EncodedPacketSink(track).packets()) await source.add(packet, meta);
    source.close();
  }));
  await output.finalize();
  return new Uint8Array(output.target.buffer);
}

async function mp4box() {
  const { createFile, MP4BoxBuffer, DataStream } = await load('mp4box');
  const file = createFile(true);
  const buffer = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
  const input = MP4BoxBuffer ? MP4BoxBuffer.fromArrayBuffer(buffer, 0) : Object.assign(buffer, { fileStart: 0 });
  const pieces = [];
  file.onReady = (info) => {
    if (format === 'mp4box-rewritten') return;
    file.onSegment = (_id, _user, segment) => pieces.push(new Uint8Array(segment));
    for (const track of info.tracks) file.setSegmentOptions(track.id, null, { nbSamples: 24 });
    pieces.push(new Uint8Array(file.initializeSegmentation().buffer));
    file.start();
  };
  file.appendBuffer(input);
  file.flush();
  return format === 'mp4box-rewritten' ? new Uint8Array(file.getBuffer().buffer ?? file.getBuffer()) : Buffer.concat(pieces);
}

writeFileSync(to, await (format.startsWith('mediabunny') ? mediabunny() : mp4box()));
