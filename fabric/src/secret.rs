//! The secret of a job, which only its members know.
//!
//! The lowest process draws it, and the launcher carries it to the others with the business cards, over
//! connections that belong to the job. A member never sends it on a fabric: only values that are derived from
//! it are sent there. Invariant: two purposes never share a derived value. Source of the derivation: J.-P.
//! Aumasson, D. J. Bernstein, SipHash: a fast short-input PRF (2012), keyed with the secret.

use siphasher::sip::SipHasher24;
use std::hash::Hasher;
use std::io;

/// The purpose of a derived value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The keys of registered memory regions.
    RegionKeys,
    /// The proof of membership that each message carries.
    Messages,
    /// The number of the job, which anyone may see.
    JobNumber,
}

/// 128 random bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secret([u8; Secret::BYTES]);

impl Secret {
    /// The size of a secret, in bytes.
    pub const BYTES: usize = 16;

    /// Draws a secret from the system's random numbers.
    ///
    /// # Errors
    /// If the system cannot return random numbers.
    pub fn draw() -> io::Result<Secret> {
        let mut bytes = [0; Secret::BYTES];
        let mut missing = &mut bytes[..];
        while !missing.is_empty() {
            let flags = rustix::rand::GetRandomFlags::empty();
            let count = rustix::io::retry_on_intr(|| rustix::rand::getrandom(&mut *missing, flags))?;
            missing = &mut missing[count..];
        }
        Ok(Secret(bytes))
    }

    /// The secret from bytes that [`Secret::to_bytes`] has written.
    pub fn from_bytes(bytes: [u8; Secret::BYTES]) -> Secret {
        Secret(bytes)
    }

    /// The secret as bytes, for the other members alone.
    pub fn to_bytes(self) -> [u8; Secret::BYTES] {
        self.0
    }

    /// 64 bits that only members can compute, different for each purpose.
    pub fn derive(self, purpose: Purpose) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        hasher.write_u64(purpose as u64);
        hasher.finish()
    }
}

/// Reports and errors show that there is a secret, but not its value.
impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_derive_the_same_and_nobody_else_does() {
        let (one, other) = (Secret::draw().unwrap(), Secret::draw().unwrap());
        assert_ne!(one, other);
        let carried = Secret::from_bytes(one.to_bytes());
        for purpose in [Purpose::RegionKeys, Purpose::Messages, Purpose::JobNumber] {
            assert_eq!(carried.derive(purpose), one.derive(purpose));
            assert_ne!(other.derive(purpose), one.derive(purpose));
        }
        assert_ne!(one.derive(Purpose::RegionKeys), one.derive(Purpose::Messages));
    }

    #[test]
    fn reports_do_not_show_it() {
        let secret = Secret::from_bytes([0xAB; 16]);
        assert_eq!(format!("{secret:?}"), "Secret(..)");
    }
}
