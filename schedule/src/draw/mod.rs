//! Pictures of schedules: the messages between ranks, by round.
//!
//! A picture needs times, which a schedule does not have. Here the time of a step depends on its kind and not
//! on its size, so that events which can happen at the same time stand side by side (space-time diagrams: L.
//! Lamport, 1978).
//!
//! Invariant: a picture shows every message once. Schedules that deadlock are drawn up to the point that they
//! reach.

mod size;
mod svg;
mod text;
mod timeline;

pub use svg::svg;
pub use text::text;

#[cfg(test)]
mod tests {
    use super::timeline::Timeline;
    use super::*;
    use crate::check::cases::Case;
    use crate::check::{CheckOptions, check};
    use crate::table::algorithms;

    #[test]
    fn pictures_have_the_messages_and_rounds_that_the_checker_counts() {
        for algorithm in algorithms() {
            let case = Case::new(algorithm.operation, 8, 40);
            let report = check(algorithm, &case.shapes(), &CheckOptions::default()).unwrap();
            let schedules: Vec<_> = (0..8).map(|rank| algorithm.schedule(&case.shape(rank), 240)).collect();
            let timeline = Timeline::new(&schedules);
            let name = format!("{}/{}", algorithm.operation, algorithm.name);
            assert_eq!(
                (timeline.messages.len(), timeline.rounds()),
                (report.messages, report.rounds),
                "{name}"
            );
            let drawn = svg(&name, &schedules);
            assert_eq!(drawn.matches("class=\"message").count(), report.messages, "{name}");
            assert!(text(&schedules, 100).contains(" 1 "), "{name}");
        }
    }
}
