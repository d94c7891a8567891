//! [`FetchedTitles`]: the rate of the media fetched on a connection, according to the library.

use std::collections::BTreeMap;

use playrate_media::cmcd::{Cmcd, ObjectType};
use playrate_units::Bitrate;

use crate::http::path::ResourceName;

/// Maximum number of titles per connection whose rates count at a time.
const MAX_TITLES: usize = 16;

/// Maximum credible playback speed in thousandths: four times, the most that players offer in their menus.
const MAX_SPEED_PER_MILLE: u64 = 4_000;

/// A request for a resource of the library, with the player's report.
#[derive(Clone, Debug)]
pub(super) struct MediaRequest {
    /// Title, and number of the set of representations within it that replace each other.
    pub(super) title: ResourceName,
    pub(super) set: usize,
    /// Average rate of the resource, if the library knows it.
    pub(super) rate: Option<Bitrate>,
    /// Average rate of the best representation of the set, if the library knows it.
    pub(super) highest_rate: Option<Bitrate>,
    /// Report of the player.
    pub(super) cmcd: Option<Cmcd>,
}

/// Titles being fetched on one connection, and the last one whose responses have ended.
///
/// Every object of a title counts once, at the rate at which its player consumes it: the library's rate times the
/// playback speed that the player reports. A report can raise the sum by that speed only, at most
/// [`MAX_SPEED_PER_MILLE`]; in all other respects each object counts at most as much as it would without a report.
#[derive(Debug, Default)]
pub(super) struct FetchedTitles(BTreeMap<ResourceName, FetchedTitle>);

#[derive(Debug, Default)]
struct FetchedTitle {
    /// Objects that play together: the last requested one of each set of representations.
    objects: BTreeMap<usize, FetchedObject>,
    responses: usize,
}

#[derive(Clone, Copy, Debug)]
struct FetchedObject {
    rate: Bitrate,
    /// Rate of the best representation that could replace it.
    highest: Bitrate,
    /// Type of the object according to its player.
    object_type: Option<ObjectType>,
}

impl FetchedTitles {
    /// Begins the response to a request. Returns false if it is not counted because its rate is unknown or there are
    /// too many titles.
    pub(super) fn begin(&mut self, request: &MediaRequest) -> bool {
        let Some(rate) = request.rate else {
            return false;
        };
        let (title, report) = (&request.title, request.cmcd.as_ref());
        self.0
            .retain(|known, fetched| known == title || fetched.responses > 0);
        if self.0.len() >= MAX_TITLES && !self.0.contains_key(title) {
            return false;
        }
        let fetched = self.0.entry(title.clone()).or_default();
        fetched.responses += 1;
        let object_type = report.and_then(|report| report.object_type);
        // The player may know better which objects replace each other: it knows the languages, for example.
        fetched
            .objects
            .retain(|_, other| !is_replaced(other.object_type, object_type));
        let reported = report.and_then(|report| report.bitrate);
        let at_speed = |rate: Bitrate| rate.scaled(report.map_or(1_000, speed_per_mille), 1_000);
        let object = FetchedObject {
            rate: at_speed(lowered(rate, reported)),
            highest: at_speed(request.highest_rate.unwrap_or(rate).max(rate)),
            object_type,
        };
        fetched.objects.insert(request.set, object);
        true
    }

    /// Ends a response of `title`. Returns true if this removes the title: its responses have ended while those of
    /// other titles are in progress.
    pub(super) fn end(&mut self, title: &ResourceName) -> bool {
        if let Some(fetched) = self.0.get_mut(title) {
            fetched.responses = fetched.responses.saturating_sub(1);
        }
        let others = self
            .0
            .iter()
            .any(|(known, fetched)| known != title && fetched.responses > 0);
        let ended = self.0.get(title).is_some_and(|fetched| fetched.responses == 0);
        if others && ended {
            self.0.remove(title);
        }
        others && ended
    }

    /// Sum of the rates; `None` if no rate is known.
    pub(super) fn rate(&self) -> Option<Bitrate> {
        self.sum_of(|object| object.rate)
    }

    /// Sum of the highest rates; `None` if no rate is known.
    pub(super) fn highest_rate(&self) -> Option<Bitrate> {
        self.sum_of(|object| object.highest)
    }

    fn sum_of(&self, rate: fn(&FetchedObject) -> Bitrate) -> Option<Bitrate> {
        let objects = self.0.values().flat_map(|fetched| fetched.objects.values());
        let sum: Bitrate = objects.map(rate).sum();
        Some(sum).filter(|&sum| sum > Bitrate::ZERO)
    }
}

/// The library's rate, or the player's if that is lower. A reported rate of zero counts as absent: it would hide the
/// library's rate.
fn lowered(rate: Bitrate, reported: Option<Bitrate>) -> Bitrate {
    reported
        .filter(|&reported| reported > Bitrate::ZERO)
        .map_or(rate, |reported| reported.min(rate))
}

/// Playback speed (`pr`) in thousandths, as far as it is credible. A player that is paused or slower than real time
/// still counts at normal speed: it may resume at once.
pub(super) fn speed_per_mille(report: &Cmcd) -> u64 {
    let speed = report.playback_rate.unwrap_or(1.0) * 1_000.0;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a number of thousandths, from 0 to 100,000"
    )]
    let speed = speed.round() as u64;
    speed.clamp(1_000, MAX_SPEED_PER_MILLE)
}

/// Returns true if an object of the type `new` replaces one of the type `other`, instead of playing together with it.
fn is_replaced(other: Option<ObjectType>, new: Option<ObjectType>) -> bool {
    let is_muxed = |object| object == Some(ObjectType::Muxed);
    is_muxed(new) || is_muxed(other) || (other == new && new.is_some_and(is_media))
}

/// Returns true if objects of this type are played and so have a rate.
pub(super) fn is_media(object: ObjectType) -> bool {
    !matches!(
        object,
        ObjectType::Manifest | ObjectType::Initialization | ObjectType::Key
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// A request for a set of `film.mpd` whose rate and highest rate are these in kbit/s.
    fn request((set, rate, highest): (usize, u64, u64), report: impl Into<Option<Cmcd>>) -> MediaRequest {
        MediaRequest {
            title: ResourceName::from_relative(Path::new("film.mpd")).unwrap(),
            set,
            rate: Some(Bitrate::from_kbps(rate)),
            highest_rate: Some(Bitrate::from_kbps(highest)),
            cmcd: report.into(),
        }
    }

    fn report(object_type: ObjectType, kbps: Option<u64>) -> Cmcd {
        let mut report = Cmcd::default();
        report.object_type = Some(object_type);
        report.bitrate = kbps.map(Bitrate::from_kbps);
        report
    }

    /// The rate in kbit/s after a request for a 4 Mbit/s set of `film.mpd`, with `report`.
    fn kbps(titles: &mut FetchedTitles, set: usize, report: impl Into<Option<Cmcd>>) -> u64 {
        assert!(titles.begin(&request((set, 4_000, 4_000), report)));
        titles.rate().unwrap().as_bits_per_second() / 1_000
    }

    #[test]
    fn the_highest_rates_of_all_objects_add_up_whatever_is_reported() {
        let mut titles = FetchedTitles::default();
        assert_eq!(titles.highest_rate(), None);
        titles.begin(&request((0, 1_000, 6_000), report(ObjectType::Video, Some(500))));
        titles.begin(&request((1, 128, 128), None::<Cmcd>));
        assert_eq!(titles.highest_rate(), Some(Bitrate::from_kbps(6_128)));
        titles.begin(&request((0, 6_000, 1_000), None::<Cmcd>));
        // It is never below the rate.
        assert_eq!(titles.highest_rate(), Some(Bitrate::from_kbps(6_128)));
    }

    #[test]
    fn a_report_lowers_the_rate_and_never_raises_it() {
        for (reported, expected) in [
            (None, 4_000),
            (Some(3_000), 3_000),
            (Some(4_001), 4_000),
            (Some(10_000_000), 4_000),
            (Some(0), 4_000),
        ] {
            let report = report(ObjectType::Video, reported);
            let mut titles = FetchedTitles::default();
            assert_eq!(kbps(&mut titles, 0, report), expected, "{reported:?}");
        }
    }

    #[test]
    fn a_reported_speed_above_one_counts_as_consumption_up_to_four() {
        for (speed, expected) in [
            (None, 4_000),
            (Some(1.77), 7_080),
            (Some(3.0), 12_000),
            (Some(100.0), 16_000),
            (Some(0.5), 4_000),
            (Some(0.0), 4_000),
        ] {
            let mut report = report(ObjectType::Video, None);
            report.playback_rate = speed;
            let mut titles = FetchedTitles::default();
            assert_eq!(kbps(&mut titles, 0, report), expected, "{speed:?}");
            assert_eq!(titles.highest_rate(), Some(Bitrate::from_kbps(expected)));
        }
    }

    #[test]
    fn no_label_of_an_object_adds_to_its_rate_or_withholds_it() {
        use ObjectType as Type;
        let mut titles = FetchedTitles::default();
        let labels = [
            Type::Manifest,
            Type::Initialization,
            Type::Video,
            Type::Audio,
            Type::Caption,
        ];
        for label in labels.into_iter().chain([Type::Key, Type::Other, Type::Muxed]) {
            assert_eq!(kbps(&mut titles, 0, report(label, None)), 4_000, "{label:?}");
        }
    }

    #[test]
    fn an_object_that_replaces_another_according_to_its_player_takes_its_place() {
        let [english, french] = [128, 96].map(|kbps| report(ObjectType::Audio, Some(kbps)));
        let mut titles = FetchedTitles::default();
        assert_eq!(kbps(&mut titles, 0, report(ObjectType::Video, None)), 4_000);
        assert_eq!(kbps(&mut titles, 1, english.clone()), 4_128);
        assert_eq!(kbps(&mut titles, 2, french), 4_096);
        assert_eq!(
            kbps(&mut titles, 3, None::<Cmcd>),
            8_096,
            "unreported sets play together"
        );
        assert_eq!(kbps(&mut titles, 4, report(ObjectType::Muxed, None)), 4_000);
        assert_eq!(kbps(&mut titles, 1, english), 128);
    }
}
