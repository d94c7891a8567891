// Chromium as all measurements start it.
import { chromium } from 'playwright-core';

// Starts headless Chromium that requests these hosts (`NAME:PORT`) over HTTP/3, and accepts the certificate that is
// pinned. Without hosts it does not use HTTP/3.
export function launch(quicHosts, pin) {
  return chromium.launch({
    executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
    args: [
      // Only for who runs as root, as CI does.
      ...(process.getuid() === 0 ? ['--no-sandbox'] : []),
      // HTTP/3 without having been told of it over TCP, which nothing serves behind the relay.
      ...(quicHosts.length > 0 ? [`--origin-to-force-quic-on=${quicHosts.join(',')}`] : ['--disable-quic']),
      // `ignoreHTTPSErrors` does not reach QUIC; this does, and for this certificate only.
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
