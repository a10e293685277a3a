//! Protocols of messages: limits, rendezvous, events at the target, strided transfers.

use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use pelago::prelude::*;
use pelago::sim::SimParams;
use pelago::{Spmd, World};

use super::XT3;
use crate::base::across::{TIME, size};
use crate::base::record::{Bench, Operation, find};
use crate::paper::claim::{Evidence, value, verdict};
use crate::paper::lab::{Between, Lab};
use crate::paper::shapes::{Across, chart, mean, solid, span};

/// The XT3's maximum of posted receives, and the entries of its queue of unexpected messages.
const XT3_POSTED: u32 = 2048;
const XT3_UNEXPECTED: u32 = 20_480;
/// The XT3's eager limit in bytes.
const XT3_EAGER_BYTES: usize = 128_000;
/// The computation of the target meanwhile.
const COMPUTATION: Duration = Duration::from_millis(1);

/// PE 1 sends numbered messages to PE 0, which posts all receives before, or begins to receive after it has
/// computed. Returns whether PE 0 got all of them, in order.
fn flood(messages: u32, is_posted: bool) -> Result<bool> {
    let outcomes = Spmd::new(2).sim(XT3.params(2, 2)).run(|world| -> pelago::Result<bool> {
        let (team, me) = (world.team(), world.my_pe());
        let mut found = vec![0_u32; messages as usize];
        if me == 0 && is_posted {
            world.scope(|scope| {
                for place in found.chunks_mut(1) {
                    scope.receive(&team, 1, 0, place)?;
                }
                world.barrier();
                Ok::<_, pelago::Error>(())
            })?;
        } else if me == 0 {
            world.barrier();
            world.simulate_compute(100 * COMPUTATION);
            for place in found.chunks_mut(1) {
                team.receive(1, 0, place)?;
            }
        } else {
            world.barrier();
            (0..messages).try_for_each(|number| team.send(0, 0, &[number]))?;
        }
        Ok(me == 1 || found.into_iter().eq(0..messages))
    })?;
    let outcomes = outcomes.into_iter().collect::<pelago::Result<Vec<_>>>()?;
    Ok(outcomes.into_iter().all(|is_right| is_right))
}

/// The default of a setting.
fn default_of(name: &str) -> Result<&'static str> {
    let row = pelago_boot::settings_table().iter().find(|row| row.name == name);
    Ok(row.with_context(|| format!("there is no setting {name}"))?.default)
}

pub fn limits(_: &Lab) -> Result<Evidence> {
    let [posted, unexpected] = [2 * XT3_POSTED, XT3_UNEXPECTED + XT3_UNEXPECTED / 4];
    let (is_posted, is_unexpected) = (flood(posted, true)?, flood(unexpected, false)?);
    let word = |is_right: bool| if is_right { "all received in order" } else { "messages are missing" };
    Ok(Evidence {
        place: format!("2 PEs, {}", XT3.name()),
        charts: Vec::new(),
        values: vec![
            value(format!("{posted} posted receives"), word(is_posted), "abort beyond 2048"),
            value(
                format!("{unexpected} messages before the first receive"),
                word(is_unexpected),
                "exhausts 20480 entries",
            ),
            value(
                "eager limit (PELAGO_EAGER_LIMIT, auto: 16 KiB, over a network 32 KiB)",
                default_of("PELAGO_EAGER_LIMIT")?,
                "128000 B",
            ),
            value("memory of unexpected messages", default_of("PELAGO_UNEXPECTED_MEMORY")?, "60 MB"),
        ],
        verdict: verdict(
            &[!is_posted, !is_unexpected],
            "receives have no maximum number, and a sender waits where memory for unexpected messages is \
             full: no job aborts at the XT3's limits",
        ),
    })
}

/// A network whose messages may be as long as the XT3's eager ones.
fn long_messages() -> SimParams {
    SimParams { message_bytes: 2 * XT3_EAGER_BYTES, ..XT3.params(2, 2) }
}

/// Nanoseconds of a message of these bytes and an empty one back.
fn round_trip(lab: &Lab, bytes: usize) -> Result<f64> {
    let limit = XT3_EAGER_BYTES.to_string();
    let job = Spmd::new(2).sim(long_messages()).setting("PELAGO_EAGER_LIMIT", &limit);
    let set_up = |_: &World| Ok(());
    lab.virtual_ns(&job, 4, set_up, |world, (), _| {
        let (team, mut data) = (world.team(), vec![1_u8; bytes]);
        let empty: &mut [u8] = &mut [];
        if world.my_pe() == 0 {
            team.send(1, 0, &data)?;
            team.receive(1, 0, empty)?;
        } else {
            team.receive(0, 0, &mut data)?;
            team.send(0, 0, empty)?;
        }
        Ok(())
    })
}

pub fn rendezvous(lab: &Lab) -> Result<Evidence> {
    let at = |bytes: usize| round_trip(lab, bytes);
    let (below, above) = (at(XT3_EAGER_BYTES)?, at(XT3_EAGER_BYTES + 8)?);
    let sizes =
        [1 << 10, 8 << 10, 32 << 10, 64 << 10, XT3_EAGER_BYTES, XT3_EAGER_BYTES + 8, 256 << 10, 1 << 20];
    let points = sizes.map(|bytes| Ok((bytes as f64, at(bytes)?))).into_iter().collect::<Result<Vec<_>>>()?;
    let (step, trip) = (above - below, 2.0 * XT3.latency_ns as f64);
    let curves = vec![solid("message and empty answer", points)];
    Ok(Evidence {
        place: format!("2 PEs, {}", XT3.name()),
        charts: vec![chart("Round trip by size, eager limit 128000 B", Across::Bytes, TIME, curves)],
        values: vec![
            value(
                "one more than the eager limit, ns more",
                format!("{step:.0}"),
                "a header there, a get back",
            ),
            value("a round trip of this network, ns", format!("{trip:.0}"), ""),
        ],
        verdict: verdict(
            &[step >= trip],
            format!("beyond the limit a message takes {:.1} round trips more", step / trip),
        ),
    })
}

/// Microseconds of PE 0 for `act`, while PE 1 computes.
fn beside_computation(act: impl Fn(&World, &Symmetric<'_, u64>) -> pelago::Result<()> + Sync) -> Result<f64> {
    let outcomes = Spmd::new(2).sim(XT3.params(2, 2)).run(|world| -> pelago::Result<Duration> {
        let place = world.alloc_zeroed::<u64>(1)?;
        world.barrier();
        let start = world.wtime();
        if world.my_pe() == 1 {
            world.simulate_compute(COMPUTATION);
        }
        act(world, &place)?;
        let elapsed = world.wtime() - start;
        world.barrier();
        Ok(elapsed)
    })?;
    let first = outcomes.into_iter().next().ok_or_else(|| anyhow!("no PE has run"))??;
    Ok(first.as_secs_f64() * 1e6)
}

pub fn events(_: &Lab) -> Result<Evidence> {
    let put = beside_computation(|world, place| {
        if world.my_pe() == 0 {
            place.put(1, 0, &[1])?;
            world.quiet();
        }
        Ok(())
    })?;
    let message = beside_computation(|world, _| match world.my_pe() {
        0 => world.team().send_synchronous(1, 0, &[1_u64]),
        _ => world.team().receive(0, 0, &mut [0_u64]).map(drop),
    })?;
    let computation = COMPUTATION.as_secs_f64() * 1e6;
    Ok(Evidence {
        place: format!("2 PEs, {}; PE 1 computes for {computation} us", XT3.name()),
        charts: Vec::new(),
        values: vec![
            value("put of 8 B and quiet, us", format!("{put:.1}"), "no event at the target"),
            value("synchronous message of 8 B, us", format!("{message:.1}"), "two events at the receiver"),
        ],
        verdict: verdict(
            &[put < computation / 10.0, message >= computation],
            format!(
                "a put completes in {put:.1} us without its target; a message that is matched takes \
                 {message:.1} us, until the target has computed"
            ),
        ),
    })
}

pub fn strided_in_memory(lab: &Lab) -> Result<Evidence> {
    strided(lab, Between::Memory)
}

pub fn strided_over_tcp(lab: &Lab) -> Result<Evidence> {
    strided(lab, Between::Tcp)
}

fn strided(lab: &Lab, between: Between) -> Result<Evidence> {
    let records = lab.perf(between, 2, &["vis"])?;
    let median = |operation, bytes, blocks| -> Option<f64> {
        let found = find(&records, |label| {
            (label.bench, label.operation, label.bytes, label.blocks)
                == (Bench::Scattered, operation, bytes, Some(blocks))
        });
        Some(found?.summary.median)
    };
    let mut values = Vec::new();
    let mut ratios = Vec::new();
    let ways =
        [("puts", Operation::PutStrided, Operation::Put), ("gets", Operation::GetStrided, Operation::Get)];
    for (name, strided, block) in ways {
        for bytes in [8, 64, 512] {
            let times = median(strided, bytes, 256).zip(median(block, bytes, 256));
            let (strided, block) = times.context("no strided transfer was measured")?;
            ratios.push(strided / block);
            let what = format!("strided {name} of 256 blocks of {} / one block, time", size(bytes));
            values.push(value(what, format!("{:.1}", strided / block), "over 100"));
        }
    }
    Ok(Evidence {
        place: format!("{}; every second block, with a quiet", between.place(2)),
        charts: Vec::new(),
        values,
        verdict: verdict(
            &[mean(&ratios) > 100.0],
            format!("strided transfers take {} times a block: they are loops, or packed", span(&ratios)),
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::claim::Outcome;

    #[test]
    fn floods_arrive_in_order() {
        assert!(flood(300, true).unwrap() && flood(300, false).unwrap());
    }

    #[test]
    fn the_protocols_are_seen_in_virtual_time() {
        let lab = Lab::new(2, true);
        for experiment in [rendezvous, events] {
            let seen = experiment(&lab).unwrap();
            assert_eq!(seen.verdict.verdict, Outcome::Holds, "{}", seen.verdict.because);
        }
    }
}
