//! Behaviour that the standard leaves undefined and programs rely on: it is as in other libraries, and
//! `PELAGO_CHECK` says that it is a mistake.

use crate::common::{c_file, run_with};

/// The standard output and standard error of `lenient.c` when it ends well.
fn says(arguments: &[&str], n: usize, check: &str) -> (String, String) {
    let ended = run_with(&c_file("lenient", &[]), arguments, n, &[("PELAGO_CHECK", check)]);
    assert_eq!(ended.status, 0, "{}: {}{}", ended.line, ended.stdout, ended.stderr);
    (ended.stdout, ended.stderr)
}

#[test]
fn a_bad_alignment_gives_null_or_the_next_one() {
    assert_eq!(says(&["align"], 2, "off"), (String::new(), String::new()));
    let (printed, said) = says(&["align"], 2, "on");
    assert_eq!(printed, "");
    assert!(said.contains("shmem_align: alignment is 3, so the result is null"), "{said}");
    assert!(said.contains("shmem_align: alignment is 21, so 32 is used"), "{said}");
}

/// All of the default size can be allocated, whatever static variables there are.
#[test]
fn the_default_heap_has_the_default_size() {
    assert_eq!(says(&["default heap"], 2, "off"), ("yes\nyes\n".to_owned(), String::new()));
}

#[test]
fn finalize_after_the_last_one_is_a_message() {
    for check in ["off", "on"] {
        let (printed, said) = says(&["finalize"], 2, check);
        let told = said.matches("shmem_finalize: called again after the last shmem_finalize").count();
        assert_eq!((printed.as_str(), told), ("", 4), "{said}");
    }
}

#[test]
fn a_pe_outside_the_active_set_of_a_reduction_goes_on() {
    for n in [2, 3] {
        assert_eq!(says(&["outside"], n, "off"), (String::new(), String::new()));
        let (printed, said) = says(&["outside"], n, "on");
        let told = said.matches("is not in the active set").count();
        assert_eq!((printed.as_str(), told), ("", 1), "{said}");
        assert!(said.contains(&format!("PE {}: shmem_long_sum_to_all", n - 1)), "{said}");
    }
}

#[test]
fn heaps_have_equal_addresses_unless_the_range_is_taken() {
    assert_eq!(says(&["addresses"], 4, "off"), ("4 equal\n".to_owned(), String::new()));
    let taken = says(&["addresses", "2"], 4, "off");
    assert_eq!(taken, ("3 equal\n".to_owned(), String::new()), "PE 2 has its heap elsewhere");
}
