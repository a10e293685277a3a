//! Settings in a program that runs with more rights than its caller (set-user-id, set-group-id, file
//! capabilities): secure execution, as ld.so(8) calls it.
//!
//! Invariant: in secure execution no variable of the environment chooses a file that this process opens or a
//! library that it loads. Libraries are then loaded by their plain names, for which the dynamic linker
//! searches trusted folders only.

use super::SettingError;

/// The settings that name a file.
const FILES: [&str; 5] = [
    "PELAGO_OFI_LIBRARY",
    "PELAGO_PMIX_LIBRARY",
    "PELAGO_COLL_TUNING",
    "PELAGO_COLL_ONLINE_FOLDER",
    "PELAGO_JOBS_FOLDER",
];

/// Variables by which libfabric and PMIx choose files to load, even in secure execution.
const FOREIGN_FILES: [&str; 8] = [
    "FI_PROVIDER_PATH",
    "PMIX_MCA_mca_base_component_path",
    "PMIX_INSTALL_PREFIX",
    "PMIX_PREFIX",
    "PMIX_EXEC_PREFIX",
    "PMIX_LIBDIR",
    "PMIX_PKGLIBDIR",
    "PMIX_PKGDATADIR",
];

/// Whether the system has started this program in secure execution.
pub fn is_secure() -> bool {
    // SAFETY: the C library's function accepts any number.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Refuses variables that name a file, if this is secure execution.
///
/// # Errors
/// The first such variable.
pub(super) fn refuse_files<'v>(
    is_secure: bool,
    variables: impl IntoIterator<Item = &'v str>,
) -> Result<(), SettingError> {
    let is_file = |variable: &str| FILES.contains(&variable) || FOREIGN_FILES.contains(&variable);
    match variables.into_iter().find(|variable| is_secure && is_file(variable)) {
        Some(variable) => Err(SettingError::Secure { variable: variable.to_owned() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings_table;
    use super::*;

    #[test]
    fn variables_that_name_a_file_are_refused_in_secure_execution_alone() {
        for file in FILES.into_iter().chain(FOREIGN_FILES) {
            let variables = ["PATH", "PELAGO_HEAP_SIZE", file];
            assert_eq!(refuse_files(false, variables), Ok(()));
            let text = refuse_files(true, variables).unwrap_err().to_string();
            assert!(text.contains(file) && text.contains("set-user-id"), "{text}");
        }
        assert_eq!(refuse_files(true, ["PATH", "PELAGO_HEAP_SIZE", "PELAGO_OFI_PROVIDER"]), Ok(()));
    }

    #[test]
    fn every_setting_that_names_a_file_is_known_as_one() {
        let names_file = |accepts: &str| accepts.contains("path") || accepts.contains("file");
        let files = settings_table().iter().filter(|row| names_file(row.accepts)).map(|row| row.name);
        assert_eq!(
            files.collect::<Vec<_>>(),
            [
                "PELAGO_OFI_LIBRARY",
                "PELAGO_COLL_TUNING",
                "PELAGO_COLL_ONLINE_FOLDER",
                "PELAGO_PMIX_LIBRARY",
                "PELAGO_JOBS_FOLDER"
            ]
        );
        assert!(FILES.iter().all(|file| settings_table().iter().any(|row| row.name == *file)));
    }
}
