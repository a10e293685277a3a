//! The handshake: two processes prove to each other that they belong to the job, before a byte of memory is
//! touched.
//!
//! ```text
//! connects                                             accepts
//!    hello: both processes, a nonce             --->
//!                                               <---   challenge: a nonce, a proof
//!    proof                                      --->
//!                                               <---   welcome
//! ```
//! A proof is an HMAC (RFC 2104, with SHA-256) of both nonces, both processes and the side that sends it,
//! keyed with the secret of the job. A stranger can neither compute it, nor use a recorded one again, nor
//! send one back. The secret is not sent. The welcome is the last message because both processes may connect
//! to each other at once: one of the two connections then gets no welcome.

use crate::secret::Secret;
use hmac::{Hmac, Mac};
use sha2::Sha256;

/// The length of a nonce, in bytes.
const NONCE_BYTES: usize = 16;
/// Bytes of a proof.
pub(super) const PROOF_BYTES: usize = 32;
/// Bytes of a hello.
pub(super) const HELLO_BYTES: usize = 8 + 4 + 4 + NONCE_BYTES;
/// Bytes of a challenge.
pub(super) const CHALLENGE_BYTES: usize = NONCE_BYTES + PROOF_BYTES;
/// The byte of a welcome.
pub(super) const WELCOME: u8 = b'W';

/// The first bytes of a hello: the protocol and its version.
const MAGIC: [u8; 8] = *b"PELAGO\x00\x01";

/// A random number that is used once.
pub(super) type Nonce = [u8; NONCE_BYTES];

/// The process that connects, and the process that accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) from: u32,
    pub(super) to: u32,
}

/// The side that gives a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Side {
    Connects = 1,
    Accepts = 2,
}

/// The data that a proof covers, and its key.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    pub(super) secret: Secret,
    pub(super) call: Call,
    /// The nonce of the side that connects, and that of the other side.
    pub(super) nonces: [Nonce; 2],
}

impl Terms {
    fn mac(&self, side: Side) -> Hmac<Sha256> {
        let mut mac = <Hmac<Sha256> as Mac>::new_from_slice(&self.secret.to_bytes())
            .expect("a key may have any length");
        mac.update(&MAGIC);
        mac.update(&[side as u8]);
        mac.update(&self.call.from.to_le_bytes());
        mac.update(&self.call.to.to_le_bytes());
        self.nonces.iter().for_each(|nonce| mac.update(nonce));
        mac
    }

    /// The proof of a side.
    pub(super) fn proof(&self, side: Side) -> [u8; PROOF_BYTES] {
        self.mac(side).finalize().into_bytes().into()
    }

    /// Whether this is the proof of a side. The time does not depend on the bytes.
    pub(super) fn is_proved(&self, side: Side, proof: &[u8]) -> bool {
        self.mac(side).verify_slice(proof).is_ok()
    }
}

/// Writes a hello.
pub(super) fn hello(call: Call, nonce: &Nonce) -> [u8; HELLO_BYTES] {
    let mut bytes = [0; HELLO_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&call.from.to_le_bytes());
    bytes[12..16].copy_from_slice(&call.to.to_le_bytes());
    bytes[16..].copy_from_slice(nonce);
    bytes
}

/// Reads a hello; `None` if the bytes are none.
pub(super) fn read_hello(bytes: &[u8; HELLO_BYTES]) -> Option<(Call, Nonce)> {
    let number = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
    let call = Call { from: number(8), to: number(12) };
    (bytes[..8] == MAGIC).then(|| (call, std::array::from_fn(|i| bytes[16 + i])))
}

/// Draws a nonce.
pub(super) fn nonce() -> std::io::Result<Nonce> {
    Secret::draw().map(Secret::to_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms() -> Terms {
        let nonces = [nonce().unwrap(), nonce().unwrap()];
        Terms { secret: Secret::draw().unwrap(), call: Call { from: 3, to: 1 }, nonces }
    }

    #[test]
    fn a_hello_is_read_as_it_was_written() {
        let (call, nonce) = (Call { from: 70_000, to: 2 }, nonce().unwrap());
        let bytes = hello(call, &nonce);
        assert_eq!(read_hello(&bytes), Some((call, nonce)));
        for place in 0..8 {
            let mut other = bytes;
            other[place] ^= 1;
            assert_eq!(read_hello(&other), None, "byte {place}");
        }
    }

    #[test]
    fn a_proof_holds_for_its_side_its_call_and_its_numbers_alone() {
        let terms = terms();
        let proof = terms.proof(Side::Connects);
        assert!(terms.is_proved(Side::Connects, &proof));
        assert!(!terms.is_proved(Side::Accepts, &proof), "what was received cannot be sent back");
        let others = [
            Terms { secret: Secret::draw().unwrap(), ..terms },
            Terms { call: Call { from: 1, to: 3 }, ..terms },
            Terms { nonces: [terms.nonces[0], [0; NONCE_BYTES]], ..terms },
            Terms { nonces: [terms.nonces[1], terms.nonces[0]], ..terms },
        ];
        assert!(others.iter().all(|other| !other.is_proved(Side::Connects, &proof)));
        for place in 0..PROOF_BYTES {
            let mut other = proof;
            other[place] ^= 0x10;
            assert!(!terms.is_proved(Side::Connects, &other), "byte {place}");
        }
        assert!(!terms.is_proved(Side::Connects, &proof[1..]) && !terms.is_proved(Side::Connects, &[]));
    }
}
