// Opens the web page of `video-server`, plays a title, and writes what the page showed while it played.
//
// A job as JSON on stdin: {origin, pin, quic, title, screenshots, name}, for screenshots dark and width, with `"captions": true` to
// switch the first captions on, and for another browser than Chromium `"firefox": {}` with options of `launchFirefox`; a report as JSON on stdout. Exit code 1 with a message if the
// title was not played.
import { readFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { launch, launchFirefox, nameOf, newPage } from './browser.mjs';

const job = JSON.parse(readFileSync(0, 'utf8'));
const { origin, pin, quic, title, screenshots, name, firefox, dark = false, width = 1180, seconds = 4 } = job;
const chromium = () => launch(quic ? [new URL(origin).host] : [], pin);
const browser = await (firefox ? launchFirefox({ dark, ...firefox }) : chromium());
const complaints = [];
try {
  // The pin that Chromium was started with covers TCP, too.
  const page = await newPage(browser, { width, height: 900, dark: firefox ? undefined : dark });
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => { if (message.type() === 'error') complaints.push(message.text()); });
  await page.goto(`${origin}/`, { timeout: 60_000 });
  const look = () => page.evaluate(() => ({
    position: video.currentTime,
    problem: document.getElementById('problem').textContent,
    protocol: document.getElementById('protocol').textContent,
    about: document.getElementById('about').textContent,
    advice: !document.getElementById('http3').hidden,
    commands: ['chromium', 'command'].map((id) => document.getElementById(id).textContent),
    wide: document.documentElement.scrollWidth,
    // Pixels of the canvases that show.
    posters: [...document.querySelectorAll('.poster canvas')].filter((canvas) => canvas.getContext('2d').getImageData(canvas.width / 2, canvas.height / 2, 1, 1).data[3] === 255).length,
    curves: [0, 1, 2, 3].map((i) => document.getElementById(`p${i}`)).map((canvas) => (canvas.clientWidth > 0 ? canvas.toDataURL() : null)),
    captions: [...video.textTracks].flatMap((track) => [...track.activeCues ?? []].map((cue) => cue.text)),
    titles: document.querySelectorAll('.title').length,
    legends: [0, 1, 2, 3].map((i) => document.getElementById(`l${i}`).textContent),
  }));
  const until = (condition, argument) => page.waitForFunction(condition, { timeout: 90_000, polling: 100 }, argument);
  const failed = async (error) => { throw new Error(`${error.message.split('\n')[0]} ${JSON.stringify({ ...(await look()), curves: [], complaints })}`); };
  if (job.posters) await until((count) => document.querySelectorAll('.poster canvas').length >= count, job.posters).catch(failed);
  const before = await look();
  await page.click(`button[aria-label="Play ${title}"]`);
  // A browser in the background of a busy machine may draw late.
  await until((least) => video.currentTime > least && !document.hidden, seconds / 2).catch(failed);
  const first = await look();
  await until((least) => video.currentTime > least, seconds).catch(failed);
  if (job.captions) {
    await until(() => video.textTracks.length > 0).catch(failed);
    await page.evaluate(() => { video.textTracks[0].mode = 'showing'; });
    await until(() => video.textTracks[0].activeCues?.length > 0).catch(failed);
  }
  const second = await look();
  if (screenshots) {
    await mkdir(screenshots, { recursive: true });
    await page.evaluate(() => scrollTo(0, 0));
    await page.screenshot({ path: path.join(screenshots, `${name}.png`), fullPage: true });
  }
  const moved = first.curves.map((curve, i) => (curve === null ? null : curve !== second.curves[i]));
  const requests = await page.evaluate(() => performance.getEntriesByType('resource').map((entry) => [new URL(entry.name).pathname, entry.nextHopProtocol]));
  console.log(JSON.stringify({ browser: await nameOf(browser), before: { ...before, curves: undefined }, after: { ...second, curves: undefined }, moved, requests, complaints }));
} catch (error) {
  console.error(`error: ${error.message}`);
  process.exitCode = 1;
} finally {
  await browser.close();
}
