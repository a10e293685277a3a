//! Objects: opened, bound, enabled and closed in order, or refused.

use super::PROVIDERS;
use super::side::{Options, Side, There, close};
use libc::c_int;
use pelago_fabric::ofi::sys::*;
use std::ptr::null_mut;

#[test]
fn what_others_need_is_not_closed() {
    for provider in PROVIDERS {
        let side = Side::open(provider, Options::default());
        let memory = [0_u8; 8];
        side.register(&memory, FI_REMOTE_READ, 1);
        // SAFETY: the objects are open, and stay open.
        let codes = unsafe {
            [
                close(side.fabric),
                close(side.domain),
                close(side.av),
                close(side.cq),
                close(side.writes),
                close(side.reads),
            ]
        };
        assert_eq!(codes, [-FI_EBUSY; 6], "{provider}");
    }
}

/// An open object of any kind prevents the domain from being closed.
#[test]
fn a_domain_is_not_closed_before_all_that_it_has() {
    let side = Side::bare("plain", Options::default());
    let memory = [0_u8; 8];
    let mut domain = null_mut();
    // SAFETY: fabric and entry are open; the places are locals.
    unsafe {
        assert_eq!(fi_domain(side.fabric, side.info.as_ptr(), &mut domain, null_mut()), 0);
        let opens: [&dyn Fn(*mut *mut fid) -> c_int; 5] = [
            &|place| {
                let mut attributes = Padded::<fi_av_attr>::zeroed();
                fi_av_open(domain, attributes.as_mut_ptr(), place.cast(), null_mut())
            },
            &|place| {
                let mut attributes = Padded::<fi_cq_attr>::zeroed();
                fi_cq_open(domain, attributes.as_mut_ptr(), place.cast(), null_mut())
            },
            &|place| {
                let mut attributes = Padded::<fi_cntr_attr>::zeroed();
                fi_cntr_open(domain, attributes.as_mut_ptr(), place.cast(), null_mut())
            },
            &|place| fi_endpoint(domain, side.info.as_ptr(), place.cast(), null_mut()),
            &|place| {
                let (start, null) = (memory.as_ptr().cast(), null_mut());
                fi_mr_reg(domain, start, 8, FI_REMOTE_READ, 0, 1, 0, place.cast(), null)
            },
        ];
        for (number, open) in opens.iter().enumerate() {
            let mut object = null_mut();
            assert_eq!(open(&mut object), 0, "object {number}");
            assert_eq!(close(domain), -FI_EBUSY, "while object {number} is open");
            assert_eq!(fi_close(object), 0, "object {number}");
        }
        assert_eq!(close(domain), 0);
    }
}

#[test]
fn an_endpoint_needs_its_objects_before_it_is_enabled_and_nothing_after() {
    let side = Side::bare("plain", Options::default());
    let there = There { address: 0, key: 1 };
    let bad_state = -(FI_EOPBADSTATE as isize);
    assert_eq!(side.write(&[1; 8], null_mut(), 0, there, null_mut(), 0), bad_state);
    assert_eq!(side.send(&[1; 8], null_mut(), 0, null_mut(), 0), bad_state);
    assert_eq!(side.post(&mut [1; 8], null_mut(), null_mut(), 0), bad_state);
    let (mut name, mut bytes) = ([0_u8; 128], 128);
    // SAFETY: the endpoint is open, and the buffer has this length.
    let name = || unsafe { fi_getname(side.ep, name.as_mut_ptr().cast(), &mut bytes) };
    assert_eq!({ name }(), -FI_EOPBADSTATE);
    assert_eq!(side.enable(), -FI_ENOAV);
    assert_eq!(side.bind(side.av, 0), 0);
    assert_eq!(side.bind(side.av, 0), -FI_EINVAL, "bound twice");
    assert_eq!(side.enable(), -FI_ENOCQ);
    assert_eq!(side.bind(side.cq, 0), -FI_EINVAL, "for nothing");
    assert_eq!(side.bind(side.cq, FI_REMOTE_READ), -FI_EBADFLAGS);
    assert_eq!(side.bind(side.cq, FI_TRANSMIT), 0);
    assert_eq!(side.enable(), -FI_ENOCQ, "nowhere to tell what arrives");
    assert_eq!(side.bind(side.cq, FI_TRANSMIT | FI_RECV), -FI_EINVAL, "bound twice");
    assert_eq!(side.bind(side.cq, FI_RECV), 0);
    assert_eq!(side.bind(side.writes, FI_REMOTE_WRITE), -FI_ENOSYS);
    assert_eq!(side.bind(side.writes, FI_WRITE), 0);
    assert_eq!(side.bind(side.reads, FI_WRITE), -FI_EINVAL, "two counters");
    assert_eq!(side.bind(side.domain, 0), -FI_EINVAL);
    let other = Side::bare("plain", Options::default());
    assert_eq!(side.bind(other.reads, FI_READ), -FI_EINVAL, "another domain's");
    assert_eq!(other.bind(side.av, 0), -FI_EINVAL, "another domain's");
    assert_eq!(other.bind(side.cq, FI_RECV), -FI_EINVAL, "another domain's");
    assert_eq!(side.enable(), 0);
    assert_eq!(side.enable(), -FI_EOPBADSTATE);
    assert_eq!(side.bind(side.reads, FI_READ), -FI_EOPBADSTATE);
    assert_eq!(side.insert(&side.name()), Some(0));
    assert_eq!(side.send(&[1; 8], null_mut(), 0, null_mut(), 0), 0);
}

#[test]
fn addresses_are_those_of_one_provider() {
    let sides = PROVIDERS.map(|provider| Side::open(provider, Options::default()));
    for (at, side) in sides.iter().enumerate() {
        let taken: Vec<_> = sides.iter().map(|other| side.insert(&other.name()).is_some()).collect();
        assert_eq!(taken, std::array::from_fn::<bool, 5, _>(|other| other == at));
        assert_eq!(side.insert(&[1; 96]), None);
        let (mut room, mut bytes) = ([0_u8; 8], 8);
        // SAFETY: the endpoint is open, and the buffer has this length.
        let code = unsafe { fi_getname(side.ep, room.as_mut_ptr().cast(), &mut bytes) };
        assert_eq!((code, bytes), (-FI_ETOOSMALL, 96));
        assert_eq!(room, side.name()[..8]);
        let (mut room, mut bytes) = ([0_u8; 96], 96);
        // SAFETY: the vector is open, and the buffer has this length.
        let code = unsafe { fi_av_lookup(side.av, 0, room.as_mut_ptr().cast(), &mut bytes) };
        assert_eq!((code, room.to_vec()), (0, side.name()));
    }
}

#[test]
fn options_that_are_not_there_are_refused() {
    let side = Side::open("plain", Options::default());
    let (bytes, mut read, mut room) = (100_usize, 0_usize, size_of::<usize>());
    let (value, place) = ((&raw const bytes).cast(), (&raw mut read).cast());
    // SAFETY: the endpoint is open, and the option is a size.
    unsafe {
        let (level, option) = (FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV);
        assert_eq!(fi_setopt(side.ep, level, FI_OPT_BUFFERED_MIN, value, room), -FI_ENOPROTOOPT);
        assert_eq!(fi_setopt(side.ep, level, option, value, 4), -FI_EINVAL);
        assert_eq!(fi_setopt(side.ep, level, option, value, room), 0);
        assert_eq!(fi_getopt(side.ep, level, option, place, &mut room), 0);
    }
    assert_eq!(read, 100);
}

#[test]
fn functions_that_nothing_fills_say_so() {
    let side = Side::open("plain", Options::default());
    let (null, size) = (null_mut(), 0);
    // SAFETY: the objects are open, and unsupported functions do not access their arguments.
    unsafe {
        assert_eq!(fi_scalable_ep(side.domain, side.info.as_ptr(), null_mut(), null), -FI_ENOSYS);
        let vectored = fi_writev(side.ep, std::ptr::null(), null_mut(), size, 0, 0, 0, null);
        assert_eq!(vectored, -(FI_ENOSYS as isize));
        assert_eq!(fi_control(side.domain.cast(), FI_GETWAIT, null), -FI_ENOSYS);
    }
}

/// This test starts itself again as a separate process, which makes the mistake.
#[test]
fn an_object_that_was_closed_ends_the_process_in_words() {
    const MISTAKE: &str = "FAKE_LIBFABRIC_TEST_USES_WHAT_IS_CLOSED";
    if std::env::var_os(MISTAKE).is_some() {
        let mut side = Side::open("plain", Options::default());
        let (cq, domain) = (side.cq, side.domain);
        let mut attributes = Padded::<fi_cq_attr>::zeroed();
        // SAFETY: the domain is open; and so is the queue until it is closed, but objects are never freed.
        unsafe {
            assert_eq!(fi_cq_open(domain, attributes.as_mut_ptr(), &mut side.cq, null_mut()), 0);
            assert_eq!(close(side.cq), 0);
            side.poll();
        }
        panic!("the queue {cq:?} was read after it was closed");
    }
    let mut program = std::process::Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", "objects::an_object_that_was_closed_ends_the_process_in_words", "--nocapture"]);
    let output = program.env(MISTAKE, "1").output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && words.contains("is used after it was closed"), "{words}");
}
