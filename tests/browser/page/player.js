// Plays a manifest with dash.js, hls.js or Shaka Player, as any page would, and keeps in `facts` what a viewer would have noticed.
//
// The address says how: player=dash|hls|shaka, manifest=PATH, cmcd=header|query|no, version=1|2 of CMCD, events=PATH for its reports of
// events, for a viewer who joins in the middle start=SECONDS, and rate=FACTOR for another speed of playback from the first frame on.
'use strict';

const wanted = new URLSearchParams(location.search);
Object.assign(facts, {
  scriptLoaded: null, // ms since the page was asked for
  stalls: [], // {at, ahead, lasted}: media time, s of media ahead, ms
  representations: [], // {at, height, kbps}: as pictures of another one come up
  ended: false,
  position: 0,
  duration: 0,
  dropped: 0,
  frames: 0,
});

let stall = null;
video.addEventListener('waiting', () => {
  if (facts.firstFrame !== null && !video.ended && !video.seeking && !stall) {
    stall = { at: video.currentTime, ahead: ahead(), lasted: null, since: performance.now() };
    facts.stalls.push(stall);
  }
});
video.addEventListener('timeupdate', () => {
  if (stall && video.currentTime > stall.at) {
    stall.lasted = performance.now() - stall.since;
    stall = null;
  }
});
video.addEventListener('ended', () => {
  facts.ended = true;
});

const cmcd = wanted.get('cmcd') || 'header';
const session = crypto.randomUUID();
const version = Number(wanted.get('version') || 1);
const target = {
  url: wanted.get('events') && new URL(wanted.get('events'), location.href).href,
  events: ['ps', 'bc', 't', 'rr', 'e'],
  batchSize: 1,
};
const targets = (more) => (target.url ? [{ ...target, ...more }] : []);
// Of dash.js and Shaka, which have no default for the keys in events.
const keys = ['br', 'bl', 'mtp', 'ot', 'pr', 'sf', 'sid', 'cid', 'st', 'sta', 'e', 'ts', 'sn', 'v', 'tb', 'd', 'rc', 'ttfb', 'ttlb', 'url', 'msd'];

video.requestVideoFrameCallback(() => {
  video.playbackRate = Number(wanted.get('rate') || 1);
});

function shown(height, kbps) {
  facts.representations.push({ at: video.currentTime, height, kbps });
}

const players = {
  dash: {
    script: 'dash.js',
    play(manifest) {
      const player = window.dashjs.MediaPlayer().create();
      facts.player = `dash.js ${player.getVersion()}`;
      // 5.2.1 calls it `headers`, whatever its documentation says.
      const mode = cmcd === 'query' ? 'query' : 'headers';
      const events = version === 2 ? { version, eventTargets: targets({ interval: 5, enabledKeys: keys, includeInRequests: ['segment'] }) } : {};
      player.updateSettings({ streaming: { cmcd: { enabled: cmcd !== 'no', mode, sid: session, cid: manifest, ...events } } });
      const { events: names } = window.dashjs.MediaPlayer;
      player.on(names.ERROR, (event) => facts.errors.push(`dash.js: ${event.error && event.error.message}`));
      player.on(names.QUALITY_CHANGE_RENDERED, ({ mediaType, newRepresentation }) => {
        if (mediaType === 'video') {
          shown(newRepresentation.height, Math.round(newRepresentation.bitrateInKbit));
        }
      });
      player.initialize(video, manifest, true, Number(wanted.get('start') || 0));
    },
  },
  hls: {
    script: 'hls.js',
    play(manifest) {
      const { Hls } = window;
      facts.player = `hls.js ${Hls.version}`;
      const player = new Hls({
        startPosition: Number(wanted.get('start') || 0),
        cmcd: cmcd === 'no' ? undefined : {
          sessionId: session, contentId: manifest, useHeaders: cmcd !== 'query', version, eventTargets: targets({ interval: 5 }),
        },
      });
      player.on(Hls.Events.ERROR, (_, { fatal, type, details }) => {
        if (fatal) {
          facts.errors.push(`hls.js: ${type} ${details}`);
        }
      });
      player.on(Hls.Events.LEVEL_SWITCHED, (_, { level }) => {
        const { height, bitrate } = player.levels[level];
        shown(height, Math.round(bitrate / 1000));
      });
      player.on(Hls.Events.MANIFEST_PARSED, () => video.play());
      player.loadSource(manifest);
      player.attachMedia(video);
    },
  },
  shaka: {
    script: 'shaka.js',
    async play(manifest) {
      const { shaka } = window;
      facts.player = `Shaka Player ${shaka.Player.version}`;
      const player = new shaka.Player();
      const complain = ({ code, message }) => facts.errors.push(`Shaka: ${code} ${message}`);
      player.addEventListener('error', ({ detail }) => complain(detail));
      player.addEventListener('adaptation', ({ newTrack }) => shown(newTrack.height, Math.round(newTrack.bandwidth / 1000)));
      await player.attach(video);
      player.configure({
        cmcd: {
          enabled: cmcd !== 'no', sessionId: session, contentId: manifest, useHeaders: cmcd !== 'query', version,
          eventTargets: targets({ enabled: true, timeInterval: 5, includeKeys: keys }),
        },
      });
      await player.load(manifest, Number(wanted.get('start') || 0)).catch(complain);
      const track = player.getVariantTracks().find(({ active }) => active);
      if (track) shown(track.height, Math.round(track.bandwidth / 1000));
      video.play();
    },
  },
};

function show() {
  const quality = video.getVideoPlaybackQuality();
  facts.position = video.currentTime;
  facts.duration = video.duration;
  // Chromium on a busy machine was seen to stop at the last picture without an `ended` event.
  if (video.duration > 0 && video.currentTime >= video.duration) facts.ended = true;
  facts.dropped = quality.droppedVideoFrames;
  facts.frames = quality.totalVideoFrames;
  const protocols = performance.getEntriesByType('resource').map((entry) => entry.nextHopProtocol);
  const counts = [...new Set(protocols)].map((one) => `${protocols.filter((other) => other === one).length} × ${one}`);
  const last = facts.representations.at(-1);
  const rows = {
    Player: facts.player,
    'First frame after': facts.firstFrame === null ? '…' : `${facts.firstFrame.toFixed(0)} ms`,
    Position: `${video.currentTime.toFixed(1)} of ${video.duration.toFixed(1)} s${facts.ended ? ', ended' : ''}`,
    'In the buffer': `${ahead().toFixed(1)} s`,
    Representation: last ? `${last.height} lines, ${last.kbps} kbit/s` : '…',
    Stalls: String(facts.stalls.length),
    Requests: counts.join(', '),
    Errors: facts.errors.join('; ') || 'none',
  };
  const table = document.getElementById('table');
  table.replaceChildren(
    ...Object.entries(rows).map(([name, value]) => {
      const row = document.createElement('tr');
      const head = document.createElement('th');
      head.textContent = name;
      row.append(head, Object.assign(document.createElement('td'), { textContent: value }));
      return row;
    }),
  );
}
setInterval(show, 250);

const chosen = players[wanted.get('player')];
if (chosen) {
  const script = document.createElement('script');
  script.src = chosen.script;
  script.onload = () => {
    facts.scriptLoaded = performance.now();
    chosen.play(wanted.get('manifest'));
  };
  script.onerror = () => facts.errors.push(`${chosen.script} did not load`);
  document.head.append(script);
} else {
  facts.errors.push(`unknown player=${wanted.get('player')}; expected one of: ${Object.keys(players).join(', ')}`);
}
