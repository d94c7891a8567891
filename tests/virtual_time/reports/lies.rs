//! [`Lie`]: what a client requests, and what it reports by CMCD with each request.

use playrate_netsim::Seed;

const TYPES: [&str; 9] = ["v", "a", "av", "c", "tt", "o", "m", "i", "k"];

/// Resources that a client requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Requests {
    /// Ranges of the title, one after the other.
    OneTitle,
    /// Ranges of two titles alternately.
    TwoTitles,
    /// A file whose rate the library does not know.
    Unknown,
}

/// The requests of one client.
#[derive(Clone, Debug)]
pub(crate) struct Lie {
    pub(crate) name: String,
    pub(crate) requests: Requests,
    report: Report,
}

#[derive(Clone, Copy, Debug)]
enum Report {
    /// Neither header fields nor query parameter.
    None,
    /// The same text with each request, with `#` replaced by the request's number modulo 16 and `?` by a type.
    Text(&'static str),
    /// One text with even-numbered requests, another with odd-numbered ones.
    Turns(&'static str, &'static str),
    /// Something random with each request.
    Random(Seed),
}

impl Lie {
    fn new(requests: Requests, report: Report) -> Self {
        Self {
            name: format!("{requests:?} {report:?}"),
            requests,
            report,
        }
    }

    /// A client without CMCD.
    pub(crate) fn none() -> Self {
        Self::new(Requests::OneTitle, Report::None)
    }

    /// The same requests with a report that contains nothing known.
    pub(crate) fn silent(&self) -> Self {
        Self::new(self.requests, Report::Text("nothing"))
    }

    /// A report that makes every claim to the maximum.
    pub(crate) fn everything() -> Self {
        let text = "sid=\"#\",ot=v,br=10000000,bl=86400000,dl=0,bs,su";
        Self::new(Requests::OneTitle, Report::Text(text))
    }

    /// The lies that should be most profitable.
    pub(crate) fn worst() -> Vec<Self> {
        use Report::{Text, Turns};
        let one = [
            // An overstated rate, in one or many sessions, for one or many objects.
            Text("sid=\"a\",ot=v,br=10000000"),
            Text("sid=\"#\",ot=v,br=4000"),
            // A buffer that has stopped growing, at a chosen size.
            Text("sid=\"a\",ot=v,bl=1000"),
            Turns("sid=\"a\",ot=v,br=1", "sid=\"a\",ot=v,br=10000000"),
            Text("sid=\"a\",ot=?,br=8000"),
            Text("sid=\"a\",ot=v,br=10000000,bl=86400000"),
            // Endless urgency.
            Text("sid=\"a\",ot=v,bs,bl=0,dl=0"),
            Text("sid=\"#\",ot=v,su,bl=0"),
            // A withheld rate: a controller that does not know it sets no ceiling.
            Text("sid=\"a\",ot=m,br=0,bl=0"),
        ];
        let others = [Requests::TwoTitles, Requests::Unknown]
            .map(|requests| Self::new(requests, Text("sid=\"#\",ot=v,br=10000000,bl=5000,su")));
        let mut lies: Vec<_> = one.map(|report| Self::new(Requests::OneTitle, report)).into();
        lies.push(Self::everything());
        lies.extend(others);
        lies
    }

    /// A random report with each request: plausible, extreme or contradictory, in few sessions or many.
    pub(crate) fn random(seed: Seed) -> Self {
        let requests = [Requests::OneTitle, Requests::TwoTitles, Requests::Unknown];
        Self::new(*choose(seed, "requests", &requests), Report::Random(seed))
    }

    /// Path of request `number`.
    pub(crate) const fn path(&self, number: u64) -> &'static str {
        match (self.requests, number % 2) {
            (Requests::Unknown, _) => "/unknown.bin",
            (Requests::TwoTitles, 1) => "/other",
            _ => "/film",
        }
    }

    /// CMCD of request `number`, if there is any.
    pub(crate) fn report(&self, number: u64) -> Option<String> {
        let text = match self.report {
            Report::None => return None,
            Report::Text(text) => text,
            Report::Turns(even, odd) => [even, odd][usize::from(number % 2 == 1)],
            Report::Random(seed) => return Some(random(seed, number)),
        };
        let object = TYPES[usize::try_from(number).unwrap() % TYPES.len()];
        Some(text.replace('#', &(number % 16).to_string()).replace('?', object))
    }
}

/// A number drawn from `seed` under this name.
fn draw(seed: Seed, name: &str) -> u64 {
    u64::from_le_bytes(*seed.derive(name).first_chunk().unwrap())
}

fn choose<'a, T>(seed: Seed, name: &str, from: &'a [T]) -> &'a T {
    let index = draw(seed, name) % from.len() as u64;
    &from[usize::try_from(index).unwrap()]
}

/// The report of request `number`. Values drawn once for all requests make some clients consistent liars.
fn random(seed: Seed, number: u64) -> String {
    // A client changes its mind never, after every ten requests, or with each request.
    let mind = *choose(seed, "mind", &[0, number / 10, number]);
    let now = seed.child(&format!("mind {mind}"));
    let sessions = choose(seed, "sessions", &[1, 2, 30]);
    let mut members = vec![format!("sid=\"{}\"", number % sessions)];
    let rates = ["1", "0", "900", "1000", "4000", "8000", "90000", "10000000", "-1"];
    let times = ["0", "100", "1000", "4000", "12000", "60000", "86400000", "1e9"];
    for (key, values) in [
        ("br", &rates[..]),
        ("ot", &TYPES),
        ("bl", &times),
        ("dl", &times),
        ("d", &times),
        ("tb", &rates),
        ("rtp", &rates),
        ("mtp", &rates),
    ] {
        // Half of the members are present.
        if draw(now, key).is_multiple_of(2) {
            members.push(format!("{key}={}", choose(now.child(key), "value", values)));
        }
    }
    let flags = ["su", "bs"]
        .into_iter()
        .filter(|flag| draw(now, flag).is_multiple_of(2));
    members.extend(flags.map(str::to_owned));
    members.join(",")
}
