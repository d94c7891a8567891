// Plays a manifest with dash.js 4 or 5 and its throughput rule when `join` is called, and keeps in `facts` what
// happened. Times are in ms since the page was asked for.
'use strict';

const SAMPLE = 250;
Object.assign(facts, {
  joined: null,
  ended: null,
  duration: null, // s
  stalls: [], // {at, since, lasted, ahead}: s of the title, ms, ms, s of media ahead
  seeks: 0, // dash.js seeks across gaps
  requests: [], // {id, number, begun, done, ahead, position, failed}: of segments; where playback was when it was done
  samples: [], // {time, position, ahead, kbps}: every second; kbps is what the throughput rule averages
  late: 0, // most ms by which a timer came late
  dropped: 0,
  frames: 0,
});
performance.setResourceTimingBufferSize(10_000);

let stall = null;
video.addEventListener('waiting', () => {
  if (facts.firstFrame !== null && !video.ended && !stall) {
    stall = { at: video.currentTime, since: performance.now(), lasted: null, ahead: ahead() };
    facts.stalls.push(stall);
  }
});
video.addEventListener('playing', () => {
  if (stall) {
    stall.lasted = performance.now() - stall.since;
    stall = null;
  }
});
video.addEventListener('seeking', () => {
  facts.seeks += facts.firstFrame === null ? 0 : 1;
});
video.addEventListener('ended', () => {
  facts.ended ??= performance.now();
});

// The representation and the number of a segment, by its name.
const named = (url) => url?.match(/seg-(\w+)-(\d+)\.m4s/);

function watch(player) {
  const { events } = window.dashjs.MediaPlayer;
  player.on(events.ERROR, (event) => facts.errors.push(`dash.js: ${event.error && event.error.message}`));
  player.on(events.FRAGMENT_LOADING_STARTED, ({ request }) => {
    const found = named(request.url);
    if (found) {
      const [, id, number] = found;
      facts.requests.push({ id, number: Number(number), begun: performance.now(), done: null, ahead: ahead() });
    }
  });
  const finish = (failed) => ({ request }) => {
    const found = named(request?.url);
    const open = found && facts.requests.findLast(
      ({ id, number, done }) => id === found[1] && number === Number(found[2]) && done === null,
    );
    if (open) {
      open.done = performance.now();
      open.position = video.currentTime;
      open.failed = failed;
    }
  };
  player.on(events.FRAGMENT_LOADING_COMPLETED, finish(false));
  player.on(events.FRAGMENT_LOADING_ABANDONED, finish(true));
}

function sample(player) {
  let [last, count] = [performance.now(), 0];
  setInterval(() => {
    const now = performance.now();
    facts.late = Math.max(facts.late, now - last - SAMPLE);
    last = now;
    const quality = video.getVideoPlaybackQuality();
    facts.dropped = quality.droppedVideoFrames;
    facts.frames = quality.totalVideoFrames;
    facts.duration = video.duration;
    // Chromium on a busy machine was seen to stop at the last picture without an `ended` event.
    if (video.duration > 0 && video.currentTime >= video.duration) {
      facts.ended ??= now;
    }
    if (count % 4 === 0 && facts.ended === null) {
      const kbps = player.getAverageThroughput('video');
      facts.samples.push({ time: now, position: video.currentTime, ahead: ahead(), kbps });
    }
    count += 1;
  }, SAMPLE);
}

// `settings` are further settings of dash.js, which is otherwise as it comes.
window.join = (manifest, settings) => {
  facts.joined = performance.now();
  const player = window.dashjs.MediaPlayer().create();
  const version = player.getVersion();
  facts.player = `dash.js ${version}`;
  const rules = version.startsWith('4.')
    ? { ABRStrategy: 'abrThroughput' }
    : { rules: { throughputRule: { active: true }, bolaRule: { active: false } } };
  player.updateSettings({ streaming: { abr: rules } });
  player.updateSettings(settings);
  watch(player);
  player.initialize(video, manifest, true);
  sample(player);
};
