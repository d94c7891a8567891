//! CMCD, in header fields and in the query, and CMSD.

use http::{HeaderMap, Uri};
use playrate_media::cmcd::{Cmcd, MAX_FIELD, MAX_IDENTIFIER, MAX_MEMBERS, MAX_RATE, MAX_TIME};
use playrate_media::cmsd::CmsdDynamic;

use super::text_request::{fields, request};
use super::within_memory;

/// Fields, keys and values of CMCD and CMSD.
pub(super) const WORDS: &str = "\
    CMCD-Object: CMCD-Request: CMCD-Session: CMCD-Status: CMSD-Static: CMSD-Dynamic: ?CMCD= br= bl= bs cid= d= dl= \
    mtp= nor= nrr= ot= pr= rtp= sf= sid= st= su tb= v=1 v=2 e=ps sta= ts= lb= br=( ;v ) etp= rtt= mb= n= , ; \" \
    \\\" \\\\ %2C %3D %22 %00 %C3%A9 ?0 ?1 true false 1.5 -1 -0.0 1e9 NaN inf 0-99 -99 99- av tt com.example-key=";

/// Rates and times are in range, whatever the player writes. Data that was read must be the same after writing and
/// reading it again.
pub(super) fn cmcd(bytes: &[u8]) {
    for event in Cmcd::read_events(&String::from_utf8_lossy(bytes)) {
        is_in_range(&event, 1);
    }
    let Some(request) = request(bytes) else { return };
    // Each member is copied once, and no more of it than a field may have.
    within_memory(16 * MAX_FIELD as u64, || {
        let Some(read) = Cmcd::read(request.headers(), request.uri()) else {
            return;
        };
        is_in_range(&read, request.headers().len());
        // Writing rounds, so a second write must give the same.
        let once = written(&read);
        let again = Cmcd::read(&once, &Uri::from_static("/")).unwrap_or_default();
        assert_eq!(
            again.ignored, 0,
            "a member that was written is not understood: {once:?}"
        );
        assert_eq!(once, written(&again), "{read:?}");
        let target: Uri = read
            .append_to("/film.mp4")
            .parse()
            .expect("what is written is a target");
        assert_eq!(
            Cmcd::read(&HeaderMap::new(), &target).unwrap_or_default(),
            again,
            "{target}"
        );
    });
}

fn written(cmcd: &Cmcd) -> HeaderMap {
    let mut headers = HeaderMap::new();
    cmcd.write_headers(&mut headers);
    headers
}

fn is_in_range(cmcd: &Cmcd, fields: usize) {
    // After the last member that is read, the rest of the query and of each field counts as one.
    let ignored = cmcd.ignored;
    assert!(ignored <= MAX_MEMBERS + 1 + fields, "{ignored} ignored");
    let rates = [
        cmcd.bitrate,
        cmcd.measured_throughput,
        cmcd.requested_throughput,
        cmcd.top_bitrate,
        cmcd.lowest_bitrate,
    ];
    assert!(
        rates.into_iter().flatten().all(|rate| rate <= MAX_RATE),
        "{cmcd:?}"
    );
    let times = [cmcd.buffer_length, cmcd.object_duration, cmcd.deadline];
    assert!(
        times.into_iter().flatten().all(|time| time <= MAX_TIME),
        "{cmcd:?}"
    );
    let names = [&cmcd.content, &cmcd.session];
    let is_name =
        |name: &String| (1..=MAX_IDENTIFIER).contains(&name.len()) && !name.contains(char::is_control);
    assert!(names.into_iter().flatten().all(is_name), "{cmcd:?}");
    assert!(
        cmcd.playback_rate
            .is_none_or(|speed| (0.0..=100.0).contains(&speed)),
        "{cmcd:?}"
    );
    assert!(
        cmcd.next_range
            .as_ref()
            .is_none_or(|range| range.start < range.end),
        "{cmcd:?}"
    );
}

/// Writes what was read; reading it again must give the same.
pub(super) fn cmsd(bytes: &[u8]) {
    let headers = fields(bytes);
    within_memory(16 * MAX_FIELD as u64, || {
        let rewritten = |headers: &HeaderMap| {
            let mut written = HeaderMap::new();
            if let Some(path) = CmsdDynamic::read(headers) {
                path.write(&mut written);
            }
            written
        };
        let once = rewritten(&headers);
        assert_eq!(once, rewritten(&once), "of {headers:?}");
    });
}
