//! Numbers and texts as bytes, for what processes tell each other through the launcher: words of 8 bytes, and
//! fields after their length. Bytes that are read are checked: they may come from another build.

/// Bytes that are being put together.
#[derive(Default)]
pub struct Writer(pub Vec<u8>);

impl Writer {
    pub fn word(&mut self, word: u64) {
        self.0.extend(word.to_le_bytes());
    }

    pub fn field(&mut self, field: &[u8]) {
        self.0.extend((field.len() as u32).to_le_bytes());
        self.0.extend(field);
    }

    /// Numbers of 4 bytes, after their count.
    pub fn numbers(&mut self, numbers: impl ExactSizeIterator<Item = u32>) {
        self.word(numbers.len() as u64);
        numbers.for_each(|number| self.0.extend(number.to_le_bytes()));
    }
}

/// Bytes that are being read. A method returns `None` if they are not what it expects.
pub struct Reader<'a>(pub &'a [u8]);

impl Reader<'_> {
    pub fn word(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*word))
    }

    pub fn size(&mut self) -> Option<usize> {
        usize::try_from(self.word()?).ok()
    }

    pub fn flag(&mut self) -> Option<bool> {
        [false, true].get(self.size()?).copied()
    }

    pub fn field(&mut self) -> Option<Vec<u8>> {
        let (length, rest) = self.0.split_first_chunk::<4>()?;
        let (field, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        self.0 = rest;
        Some(field.to_vec())
    }

    pub fn text(&mut self) -> Option<String> {
        Some(String::from_utf8_lossy(&self.field()?).into_owned())
    }

    pub fn numbers(&mut self) -> Option<Vec<u32>> {
        let bytes = self.size()?.checked_mul(4)?;
        let (numbers, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(
            numbers
                .chunks_exact(4)
                .map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]))
                .collect(),
        )
    }

    /// The value, if all bytes were read.
    pub fn end<T>(self, value: T) -> Option<T> {
        self.0.is_empty().then_some(value)
    }
}
