//! The memory of queues.

use super::super::send_queue::{GATHERED_BYTES, KEPT_BYTES, OUTSTANDING_BYTES_MAX};
use super::*;

/// Lets PE 1 get data of one length from PE 0 `count` times, without waiting between them. Returns the most
/// gets that were outstanding, and the most memory of the queue of PE 0 to PE 1.
fn most_of_gets(job: &Job, bytes: usize, count: u64) -> (u64, usize) {
    let (target, origin) = (&job.endpoints[0], &job.endpoints[1]);
    let (mut into, source) = (vec![0_u8; bytes], Remote { key: KEY, offset_bytes: 0 });
    let (mut started, mut most, mut most_bytes) = (0, 0, 0);
    let before = origin.completions().gets;
    job.until("the gets", || {
        while started < count {
            let completion = Completion::Counted;
            let get = Get { pe: 0, source, target: into.as_mut_ptr(), bytes, completion };
            // SAFETY: the target is kept until all gets are complete.
            if unsafe { origin.get(get) } != Status::Pending {
                break;
            }
            started += 1;
        }
        let complete = origin.completions().gets - before;
        most = most.max(started - complete);
        // PE 0 executes all gets before PE 1 receives a reply.
        for _ in 0..100 {
            target.progress(&mut |_| ()).unwrap();
        }
        most_bytes = most_bytes.max(target.domain.peer(1).send_queue().allocated_bytes());
        complete == count
    });
    assert!(into.iter().zip(GUARD.to_ne_bytes().iter().cycle()).all(|(byte, guard)| byte == guard));
    (most, most_bytes)
}

#[test]
fn outstanding_gets_take_a_few_mebibytes_at_their_target() {
    let job = Job::open(2);
    for (bytes, at_least) in [(8, 50_000), (1024, 3000), (GATHERED_BYTES, 1000), (2 * GATHERED_BYTES, 1000)] {
        let (most, taken) = most_of_gets(&job, bytes, 60_000.min(40_000_000 / bytes as u64));
        assert!(most >= at_least, "only {most} gets of {bytes} bytes at a time");
        assert!(most as usize * bytes.min(GATHERED_BYTES) <= OUTSTANDING_BYTES_MAX);
        // A growing vector doubles, and may have as many bytes that were sent.
        assert!(taken <= 4 * OUTSTANDING_BYTES_MAX, "{most} gets of {bytes} bytes take {taken} bytes");
        for pe in [0, 1] {
            let kept = job.endpoints[pe].domain.peer(1 - pe).send_queue().allocated_bytes();
            assert!(kept <= 4 * KEPT_BYTES, "PE {pe} keeps {kept} bytes after gets of {bytes}");
        }
    }
}
