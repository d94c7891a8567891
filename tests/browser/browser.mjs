// Browsers as all tests and measurements start them.
import puppeteer from 'puppeteer-core';

// Starts headless Chromium that requests these hosts (`NAME:PORT`) over HTTP/3, and accepts the certificate that is
// pinned. Without hosts it does not use HTTP/3.
export function launch(quicHosts, pin) {
  return puppeteer.launch({
    browser: 'chrome',
    executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
    defaultViewport: null,
    args: [
      // Only for who runs as root, as CI does.
      ...(process.getuid() === 0 ? ['--no-sandbox'] : []),
      // HTTP/3 without having been told of it over TCP, which nothing serves behind the relay.
      ...(quicHosts.length > 0 ? [`--origin-to-force-quic-on=${quicHosts.join(',')}`] : ['--disable-quic']),
      // `acceptInsecureCerts` does not reach QUIC; this does, and for this certificate only.
      `--ignore-certificate-errors-spki-list=${pin}`,
      // Nothing else may be asked for, not even the vendor's hosts.
      '--host-resolver-rules=MAP localhost 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
      '--disable-background-networking',
      '--disable-component-update',
      '--no-first-run',
      '--autoplay-policy=no-user-gesture-required',
    ],
  });
}

// Starts headless Firefox, over WebDriver BiDi. It accepts every certificate, but over HTTP/3 only one that its profile
// (a directory) trusts. Colours are set here, since BiDi of this Firefox cannot set those of a page.
export function launchFirefox({ dark = false, profile, preferences = {} } = {}) {
  return puppeteer.launch({
    browser: 'firefox',
    executablePath: process.env.FIREFOX || '/usr/bin/firefox-esr',
    defaultViewport: null,
    acceptInsecureCerts: true,
    ...(profile ? { userDataDir: profile } : {}),
    extraPrefsFirefox: {
      'layout.css.prefers-color-scheme.content-override': dark ? 0 : 1,
      'media.autoplay.default': 0,
      ...preferences,
    },
  });
}

// A page of this size; in Chromium also in light or dark colours.
export async function newPage(context, { width, height, dark }) {
  const page = await context.newPage();
  await page.setViewport({ width, height });
  if (dark !== undefined) {
    await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: dark ? 'dark' : 'light' }]);
  }
  return page;
}

// Name and version, such as `Chromium 156.0.8078.79`.
export async function nameOf(browser) {
  const [name, version] = (await browser.version()).split('/');
  return `${/firefox/i.test(name) ? 'Firefox' : 'Chromium'} ${version}`;
}
