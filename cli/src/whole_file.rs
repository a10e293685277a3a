//! Files that a command writes at its end. Invariant: the file is complete, or is what it was before, and a
//! path that cannot be written is refused before the work begins. A device or a pipe is written in its place.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// A file that does not have its name yet. Dropping it leaves nothing behind.
pub struct WholeFile {
    path: PathBuf,
    /// The temporary file, which is renamed.
    part: Option<PathBuf>,
    file: File,
}

impl WholeFile {
    /// Creates the temporary file, in the folder of the file. If the path is a symbolic link, that is the
    /// folder of the file that it leads to.
    pub fn create(path: &Path) -> anyhow::Result<WholeFile> {
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if fs::metadata(&path).is_ok_and(|found| !found.is_file()) {
            let file = File::options().write(true).open(&path);
            let file = file.with_context(|| format!("writing {}", path.display()))?;
            return Ok(WholeFile { path, part: None, file });
        }
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{}.part", std::process::id()));
        let part = PathBuf::from(name);
        let file = File::create(&part).with_context(|| format!("creating {}", part.display()))?;
        Ok(WholeFile { path, part: Some(part), file })
    }

    /// The file to write to.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Writes the text, and gives the file its name.
    pub fn finish(mut self, text: &str) -> anyhow::Result<()> {
        let written = self.file.write_all(text.as_bytes());
        written.with_context(|| format!("writing {}", self.path.display()))?;
        self.keep()
    }

    /// Gives the file its name.
    pub fn keep(mut self) -> anyhow::Result<()> {
        let Some(part) = self.part.take() else { return Ok(()) };
        let named = fs::rename(&part, &self.path);
        named.with_context(|| format!("writing {}", self.path.display())).inspect_err(|_| {
            let _ = fs::remove_file(&part);
        })
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            let _ = fs::remove_file(part);
        }
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
        drop(WholeFile::create(&path).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "text\n", "it is what it was before");
        let link = path.with_extension("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        WholeFile::create(&link).unwrap().finish("more\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "more\n", "a link leads to the file");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        fs::remove_file(&link).unwrap();
        fs::remove_file(&path).unwrap();
        WholeFile::create(Path::new("/dev/null")).unwrap().finish("text\n").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file(), "a device stays one");
        let error = WholeFile::create(Path::new("/no/such/folder/x")).err().unwrap().to_string();
        assert!(error.contains("/no/such/folder/x"), "{error}");
    }
}
