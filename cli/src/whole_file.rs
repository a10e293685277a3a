//! Files that a command writes at its end. Invariant: the file is complete or does not exist, and a path that
//! cannot be written is refused before the work begins.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// A file that does not have its name yet. Dropping it leaves nothing behind.
pub struct WholeFile {
    path: PathBuf,
    part: PathBuf,
    file: File,
}

impl WholeFile {
    /// Creates the temporary file, in the folder of the file.
    pub fn create(path: &Path) -> anyhow::Result<WholeFile> {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{}.part", std::process::id()));
        let part = PathBuf::from(name);
        let file = File::create(&part).with_context(|| format!("creating {}", part.display()))?;
        Ok(WholeFile { path: path.to_owned(), part, file })
    }

    /// Writes the text, and gives the file its name.
    pub fn finish(mut self, text: &str) -> anyhow::Result<()> {
        self.file.write_all(text.as_bytes()).with_context(|| format!("writing {}", self.part.display()))?;
        fs::rename(&self.part, &self.path).with_context(|| format!("writing {}", self.path.display()))
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        // After `finish` there is none.
        fs::remove_file(&self.part).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_whole_or_not_there() {
        let path = std::env::temp_dir().join(format!("whole-{}", std::process::id()));
        drop(WholeFile::create(&path).unwrap());
        assert!(!path.exists());
        WholeFile::create(&path).unwrap().finish("text\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "text\n");
        fs::remove_file(&path).unwrap();
        let error = WholeFile::create(Path::new("/no/such/folder/x")).err().unwrap().to_string();
        assert!(error.contains("/no/such/folder/x"), "{error}");
    }
}
