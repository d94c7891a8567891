// Opens the player's page in headless Chromium, over HTTP/3 unless told otherwise, waits for the end, and writes what happened.
//
// A job as JSON on stdin, a report as JSON on stdout; README.md has an example. Exit code 1 with a message if the page was not played.
import { readFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { launch, nameOf, newPage } from './browser.mjs';

const job = JSON.parse(readFileSync(0, 'utf8'));
const { origin, query, pin, screenshots, name, quic = true, seconds = 60, toTheEnd = true } = job;
const { quicOrigins = quic ? [origin] : [] } = job;
const browser = await launch(quicOrigins.map((each) => new URL(each).host), pin);

async function shot(page, moment) {
  if (screenshots) {
    await mkdir(screenshots, { recursive: true });
    await page.screenshot({ path: path.join(screenshots, `${name}-${moment}.png`) });
  }
}

try {
  const page = await newPage(browser, { width: 940, height: 800 });
  const complaints = [];
  page.on('pageerror', (error) => complaints.push(`page: ${error.message}`));
  // What the player said of itself, as it was sent: header fields, the parameter, and reports of events.
  const cmcd = [];
  page.on('request', (request) => {
    const url = new URL(request.url());
    const fields = Object.entries(request.headers()).filter(([name]) => name.startsWith('cmcd-'));
    const query = url.searchParams.get('CMCD');
    const report = request.method() === 'POST' ? request.postData() : undefined;
    if (fields.length > 0 || query !== null || report) {
      cmcd.push({ path: url.pathname, fields: Object.fromEntries(fields), query, report, type: request.headers()['content-type'] });
    }
  });
  page.on('requestfailed', (request) => complaints.push(`${request.url()}: ${request.failure()?.errorText}`));
  await page.goto(`${origin}/player.html?${new URLSearchParams(query)}`, { timeout: 60_000 });
  const until = (condition, limit) => page.waitForFunction(condition, { timeout: limit * 1000, polling: 100 });
  const failed = async (error) => {
    const facts = await page.evaluate(() => window.facts);
    throw new Error(`${error.message.split('\n')[0]} ${JSON.stringify({ facts, complaints })}`);
  };
  await until(() => window.facts.errors.length > 0 || window.facts.firstFrame !== null, 60).catch(failed);
  if (toTheEnd) {
    await until(() => window.facts.errors.length > 0 || window.facts.position > window.facts.duration / 2, seconds).catch(failed);
    await shot(page, 'halfway');
    await until(() => window.facts.errors.length > 0 || window.facts.ended, seconds).catch(failed);
    // So that the page shows the end, too.
    await pause(400);
    await shot(page, 'end');
  }
  const facts = await page.evaluate(() => window.facts);
  const requests = await page.evaluate(() =>
    [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')].map((entry) => ({
      url: entry.name,
      protocol: entry.nextHopProtocol,
      start: entry.startTime,
      connect: entry.connectEnd - entry.connectStart,
      firstByte: entry.responseStart - entry.startTime,
      ms: entry.duration,
      bytes: entry.encodedBodySize,
    })),
  );
  console.log(JSON.stringify({ browser: await nameOf(browser), facts, requests, cmcd, complaints }));
} catch (error) {
  console.error(`error: ${error.message}`);
  process.exitCode = 1;
} finally {
  await browser.close();
}
