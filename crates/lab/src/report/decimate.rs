//! Draws a line that looks the same with fewer points.

/// Position x and value y of a point, and a number attached to it.
pub(super) type Point = [f64; 3];

/// At most about `4 × buckets` of `points`, which draw the same line: the first, lowest, highest and last point of
/// every bucket of equal width in x, so that no spike is lost. `points` are sorted by x.
pub(super) fn decimate(points: &[Point], buckets: usize) -> Vec<Point> {
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return Vec::new();
    };
    let width = (last[0] - first[0]) / buckets.max(1) as f64;
    if points.len() <= buckets.saturating_mul(4) || width <= 0.0 {
        return points.to_vec();
    }
    let mut kept = Vec::with_capacity(buckets * 4);
    let mut rest = points;
    let mut bucket = 0_usize;
    while !rest.is_empty() {
        bucket += 1;
        let edge = first[0] + width * bucket as f64;
        let is_last = bucket >= buckets;
        let end = if is_last {
            rest.len()
        } else {
            rest.partition_point(|point| point[0] < edge)
        };
        let (here, after) = rest.split_at(end);
        keep_extremes(here, &mut kept);
        rest = after;
    }
    kept
}

fn keep_extremes(points: &[Point], kept: &mut Vec<Point>) {
    if points.is_empty() {
        return;
    }
    let by_value = |a: &usize, b: &usize| points[*a][1].total_cmp(&points[*b][1]);
    let lowest = (0..points.len()).min_by(by_value).unwrap_or(0);
    let highest = (0..points.len()).max_by(by_value).unwrap_or(0);
    let mut chosen = vec![0, lowest, highest, points.len() - 1];
    chosen.sort_unstable();
    chosen.dedup();
    kept.extend(chosen.into_iter().map(|index| points[index]));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saw(n: u32) -> Vec<Point> {
        let value = |i| if i == n / 3 { 1e6 } else { f64::from(i % 10) };
        (0..n).map(|i| [f64::from(i), value(i), 0.0]).collect()
    }

    #[test]
    fn a_single_spike_among_many_points_survives() {
        let points = saw(100_000);
        let kept = decimate(&points, 200);
        assert!(kept.len() <= 800, "{}", kept.len());
        assert!(kept.iter().any(|point| point[1] >= 1e6));
        assert_eq!((kept.first(), kept.last()), (points.first(), points.last()));
    }

    #[test]
    fn points_stay_in_order_and_are_taken_from_the_input() {
        let points = saw(5_000);
        let kept = decimate(&points, 50);
        assert!(kept.windows(2).all(|pair| pair[0][0] < pair[1][0]));
        assert!(kept.iter().all(|point| points.contains(point)));
    }

    #[test]
    fn few_points_are_kept_unchanged() {
        let points = saw(40);
        assert_eq!(decimate(&points, 10), points);
        assert_eq!(decimate(&[], 10), [[0.0; 3]; 0]);
        let same_x = vec![[1.0, 2.0, 0.0]; 100];
        assert_eq!(decimate(&same_x, 10), same_x);
    }
}
