// The page's video, and what every page keeps in `facts` of it. Times are in ms since the page was asked for.
'use strict';

const video = document.getElementById('video');
const facts = {
  player: '', // its name and version
  firstFrame: null,
  errors: [],
};
window.facts = facts;

// Seconds of media ahead of playback.
function ahead() {
  const { buffered, currentTime } = video;
  for (let i = 0; i < buffered.length; i += 1) {
    // Browsers forgive small gaps at the start.
    if (buffered.start(i) <= currentTime + 0.1 && currentTime <= buffered.end(i)) {
      return buffered.end(i) - currentTime;
    }
  }
  return 0;
}

video.requestVideoFrameCallback(() => {
  facts.firstFrame = performance.now();
});

video.addEventListener('error', () => {
  facts.errors.push(`video: ${video.error && video.error.message}`);
});
