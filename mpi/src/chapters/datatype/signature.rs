//! The type signature of an element: its elementary types in the order of the type map, without offsets.
//!
//! Invariant: the form is compressed, so that its length does not depend on counts. Runs of one named
//! datatype that follow each other are one run, and repetitions of one signature that follow each other are
//! one.

use super::named::{Basic, Named};
use std::sync::Arc;

/// The type signature of an element.
#[derive(Clone, Debug)]
pub struct Signature {
    form: Form,
    /// Bytes of data in memory.
    bytes: usize,
    /// Bytes of data in `external32`.
    external_bytes: usize,
    /// The elements that `MPI_Get_elements` counts.
    elements: u64,
}

#[derive(Clone, Debug)]
enum Form {
    Empty,
    Run { named: Named, count: usize },
    Repeated { body: Arc<Signature>, count: usize },
    Sequence(Arc<[Signature]>),
}

impl Signature {
    pub const EMPTY: Signature = Signature { form: Form::Empty, bytes: 0, external_bytes: 0, elements: 0 };

    /// One element of a named datatype.
    pub fn of(named: Named) -> Signature {
        Signature {
            form: Form::Run { named, count: 1 },
            bytes: named.native_bytes(),
            external_bytes: named.external_bytes(),
            elements: named.elements(),
        }
    }

    /// The same `count` times. The caller has checked that the bytes are a number of this machine.
    pub fn repeated(&self, count: usize) -> Signature {
        let form = match &self.form {
            _ if count == 0 => return Signature::EMPTY,
            Form::Empty => return Signature::EMPTY,
            _ if count == 1 => return self.clone(),
            Form::Run { named, count: inner } => Form::Run { named: *named, count: inner * count },
            Form::Repeated { body, count: inner } => {
                Form::Repeated { body: Arc::clone(body), count: inner * count }
            }
            Form::Sequence(_) => Form::Repeated { body: Arc::new(self.clone()), count },
        };
        Signature {
            form,
            bytes: self.bytes * count,
            external_bytes: self.external_bytes.saturating_mul(count),
            elements: self.elements * count as u64,
        }
    }

    /// One after the other.
    pub fn sequence(signatures: impl IntoIterator<Item = Signature>) -> Signature {
        let mut parts: Vec<Signature> = Vec::new();
        for next in signatures {
            let merged = parts.last_mut().is_some_and(|last| last.append(&next));
            if !merged && !matches!(next.form, Form::Empty) {
                parts.push(next);
            }
        }
        if parts.len() < 2 {
            return parts.pop().unwrap_or(Signature::EMPTY);
        }
        Signature {
            bytes: parts.iter().map(|part| part.bytes).sum(),
            external_bytes: parts.iter().fold(0, |sum, part| sum.saturating_add(part.external_bytes)),
            elements: parts.iter().map(|part| part.elements).sum(),
            form: Form::Sequence(parts.into()),
        }
    }

    /// Makes this and the next one; whether it was possible.
    fn append(&mut self, next: &Signature) -> bool {
        match (&mut self.form, &next.form) {
            (Form::Run { named, count }, Form::Run { named: other, count: more }) if named == other => {
                *count += more;
            }
            (Form::Repeated { body, count }, Form::Repeated { body: other, count: more })
                if Arc::ptr_eq(body, other) =>
            {
                *count += more;
            }
            (Form::Sequence(parts), Form::Sequence(other)) if Arc::ptr_eq(parts, other) => {
                *self = self.repeated(2);
                return true;
            }
            (Form::Repeated { body, count }, Form::Sequence(other)) => match &body.form {
                Form::Sequence(parts) if Arc::ptr_eq(parts, other) => *count += 1,
                _ => return false,
            },
            _ => return false,
        }
        self.bytes += next.bytes;
        self.external_bytes = self.external_bytes.saturating_add(next.external_bytes);
        self.elements += next.elements;
        true
    }

    pub fn external_bytes(&self) -> usize {
        self.external_bytes
    }

    /// The elementary type, if all are the same.
    pub fn only(&self) -> Option<Basic> {
        match &self.form {
            Form::Empty => None,
            Form::Run { named, .. } => Some(named.basic()),
            Form::Repeated { body, .. } => body.only(),
            Form::Sequence(parts) => {
                let first = parts.first()?.only()?;
                parts.iter().all(|part| part.only() == Some(first)).then_some(first)
            }
        }
    }

    /// Calls a function with the runs of `count` elements: a named datatype, and how often it follows itself.
    pub fn for_each_run(&self, count: usize, each: &mut impl FnMut(Named, usize)) {
        match &self.form {
            Form::Empty => {}
            Form::Run { named, count: inner } => {
                if count > 0 {
                    each(*named, inner * count);
                }
            }
            Form::Repeated { body, count: inner } => body.for_each_run(inner * count, each),
            Form::Sequence(parts) => {
                for _ in 0..count {
                    for part in parts.iter() {
                        part.for_each_run(1, each);
                    }
                }
            }
        }
    }

    /// The elements in this many bytes of data; `None` if they end within one.
    pub fn elements_in(&self, bytes: u64) -> Option<u64> {
        if bytes == 0 {
            return Some(0);
        }
        let size = self.bytes as u64;
        let whole = bytes.checked_div(size)?;
        Some(whole.checked_mul(self.elements)? + self.elements_in_part(bytes % size)?)
    }

    /// The same for fewer bytes than an element has.
    fn elements_in_part(&self, bytes: u64) -> Option<u64> {
        match &self.form {
            _ if bytes == 0 => Some(0),
            Form::Empty => None,
            Form::Run { named, .. } => {
                let rest = bytes % named.native_bytes() as u64;
                let whole = bytes / named.native_bytes() as u64 * named.elements();
                match named.parts() {
                    _ if rest == 0 => Some(whole),
                    (first, Some(_)) if rest == first.native_bytes() as u64 => Some(whole + 1),
                    _ => None,
                }
            }
            Form::Repeated { body, .. } => body.elements_in(bytes),
            Form::Sequence(parts) => {
                let (mut rest, mut elements) = (bytes, 0);
                for part in parts.iter() {
                    if rest < part.bytes as u64 {
                        return Some(elements + part.elements_in_part(rest)?);
                    }
                    rest -= part.bytes as u64;
                    elements += part.elements;
                }
                Some(elements)
            }
        }
    }

    /// The bytes of data of this number of elements; `None` if there are none in the signature.
    pub fn bytes_of(&self, elements: u64) -> Option<u64> {
        if elements == 0 {
            return Some(0);
        }
        let whole = elements.checked_div(self.elements)?;
        whole.checked_mul(self.bytes as u64)?.checked_add(self.bytes_of_part(elements % self.elements))
    }

    fn bytes_of_part(&self, elements: u64) -> u64 {
        match &self.form {
            Form::Empty => 0,
            Form::Run { named, .. } => {
                let whole = elements / named.elements() * named.native_bytes() as u64;
                let is_half = !elements.is_multiple_of(named.elements());
                whole + if is_half { named.parts().0.native_bytes() as u64 } else { 0 }
            }
            Form::Repeated { body, .. } => body.bytes_of(elements).unwrap_or(0),
            Form::Sequence(parts) => {
                let (mut rest, mut bytes) = (elements, 0);
                for part in parts.iter() {
                    if rest < part.elements {
                        return bytes + part.bytes_of_part(rest);
                    }
                    rest -= part.elements;
                    bytes += part.bytes as u64;
                }
                bytes
            }
        }
    }

    /// The elementary types of `count` elements, one after the other.
    #[cfg(test)]
    pub fn basics(&self, count: usize) -> Basics<'_> {
        Basics { stack: vec![(self, count, 0)], run: None }
    }
}

/// The elementary types of elements.
#[cfg(test)]
pub struct Basics<'a> {
    /// Signatures that the iterator is within: how often it still goes over each, and the next part.
    stack: Vec<(&'a Signature, usize, usize)>,
    run: Option<(Named, usize)>,
}

#[cfg(test)]
impl Iterator for Basics<'_> {
    type Item = Named;

    fn next(&mut self) -> Option<Named> {
        loop {
            if let Some((named, count @ 1..)) = &mut self.run {
                *count -= 1;
                return Some(*named);
            }
            let (signature, remaining, index) = self.stack.last_mut()?;
            if *remaining == 0 {
                self.stack.pop();
                continue;
            }
            match &signature.form {
                Form::Empty => *remaining = 0,
                Form::Run { named, count } => {
                    self.run = Some((*named, *count * *remaining));
                    *remaining = 0;
                }
                Form::Repeated { body, count } => {
                    let times = *count * *remaining;
                    *remaining = 0;
                    self.stack.push((body, times, 0));
                }
                Form::Sequence(parts) => match parts.get(*index) {
                    Some(part) => {
                        *index += 1;
                        self.stack.push((part, 1, 0));
                    }
                    None => {
                        *remaining -= 1;
                        *index = 0;
                    }
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::*;

    fn run(handle: MPI_Datatype, count: usize) -> Signature {
        Signature::of(Named::of(handle).unwrap()).repeated(count)
    }

    #[test]
    fn elements_are_counted_without_going_over_them() {
        let record = Signature::sequence([run(MPI_DOUBLE, 1), run(MPI_INT, 2), run(MPI_CHAR, 3)]);
        let many = record.repeated(1 << 40);
        assert_eq!((many.bytes, many.elements), (19 << 40, 6 << 40));
        let counts = [(0, 0), (8, 1), (12, 2), (17, 4), (19, 6), (27, 7)];
        for (bytes, elements) in counts {
            assert_eq!(many.elements_in(bytes), Some(elements), "{bytes} bytes");
            assert_eq!(many.bytes_of(elements), Some(bytes), "{elements} elements");
        }
        assert_eq!([4, 13 - 1 - 2, 14, 20].map(|bytes| many.elements_in(bytes)), [None; 4]);
        assert_eq!(record.elements_in(19 * 5 + 8), Some(31));
    }

    #[test]
    fn a_pair_has_two_elements() {
        let pairs = run(MPI_DOUBLE_INT, 3);
        let found = [0, 8, 12, 20, 24, 10].map(|bytes| pairs.elements_in(bytes));
        assert_eq!(found, [Some(0), Some(1), Some(2), Some(3), Some(4), None]);
        assert_eq!([0, 1, 2, 3].map(|elements| pairs.bytes_of(elements).unwrap()), [0, 8, 12, 20]);
    }

    #[test]
    fn repetitions_of_one_signature_are_one() {
        let record = Signature::sequence([run(MPI_DOUBLE, 1), run(MPI_INT, 1)]);
        let joined = Signature::sequence([record.clone(), record.clone(), record.repeated(3)]);
        assert_eq!(joined.elements_in(12 * 5), Some(10));
        let mut runs = Vec::new();
        joined.for_each_run(1, &mut |named, count| runs.push((named.handle(), count)));
        assert_eq!(runs, [(MPI_DOUBLE, 1), (MPI_INT, 1)].repeat(5));
        assert_eq!(joined.basics(2).count(), 20);
        assert_eq!((record.only(), run(MPI_LONG, 4).only()), (None, Some(Basic::Signed(8))));
        let longs = Signature::sequence([run(MPI_LONG, 1), run(MPI_LONG_LONG, 1)]);
        assert_eq!(longs.only(), Some(Basic::Signed(8)));
    }
}
