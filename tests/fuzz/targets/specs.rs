//! Controllers, rates, sizes, times and link models in the form that users write.

use core::fmt::{Debug, Display};
use core::str::FromStr;

use playrate_netsim::{LinkConfig, Rate, Seed};
use playrate_transport::ControllerChoice;
use playrate_units::{Bitrate, Bytes, Duration, Probability, duration};

/// Names and parameters of the registry, units, forms of link models.
pub(super) const WORDS: &str = "\
    reno cubic vegas ccp ccpd ccp-lb compound stream quinn-cubic quinn-newreno quinn-bbr start= shape= idle= loss= \
    ceiling= standard hystart hystartpp short video-rate playout-buffer keep rfc5681 cwv new-cwv restart guard \
    ignore pace kp= kd= pob_rate= fast_convergence=off arithmetic=original ( ) , + 4ms 656kB unlimited wifi( \
    queue= @30s Mbit/s kbit/s Gbit/s bit/s KiB MiB GB us ns min h % _ . 1e-4";

/// Printing the value of a valid text and reading it again gives the same value. A text contains a digit or is a word.
pub(super) fn check(bytes: &[u8]) {
    let Ok(text) = core::str::from_utf8(bytes) else {
        return;
    };
    round_trips::<ControllerChoice>(text);
    for quantity in [
        round_trips::<Bitrate>(text).is_some(),
        round_trips::<Bytes>(text).is_some(),
        round_trips::<Probability>(text).is_some(),
        time_round_trips(text),
    ] {
        let has_digit = text.chars().any(|character| character.is_ascii_digit());
        assert!(!quantity || has_digit, "`{text}` is a quantity without a digit");
    }
    if let Some(rate) = round_trips::<Rate>(text) {
        // A rate may still be too high or too low for a link; that is an error, not a panic.
        let link = LinkConfig::new(rate, Duration::from_millis(10));
        let _ = link.build(Duration::from_millis(100), Seed::new(1));
    }
}

fn round_trips<T: FromStr + Display + PartialEq + Debug>(text: &str) -> Option<T>
where
    T::Err: Display,
{
    match text.parse::<T>() {
        Ok(read) => {
            let printed = read.to_string();
            let again = printed.parse::<T>();
            let again = again.unwrap_or_else(|error| panic!("`{text}` is printed as `{printed}`: {error}"));
            assert_eq!(read, again, "`{text}` is printed as `{printed}`");
            assert_eq!(printed, again.to_string());
            Some(read)
        }
        Err(error) => {
            let said = error.to_string();
            assert!(
                said.len() < 10 * text.len() + 2_000,
                "an error of {} bytes: {said}",
                said.len()
            );
            None
        }
    }
}

fn time_round_trips(text: &str) -> bool {
    let read = duration::parse(text);
    if let Ok(time) = read {
        let printed = duration::display(time).to_string();
        assert_eq!(
            duration::parse(&printed),
            Ok(time),
            "`{text}` is printed as `{printed}`"
        );
    }
    read.is_ok()
}
