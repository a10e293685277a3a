//! The handshake: two processes prove to each other that they belong to the job, before a byte of memory is
//! touched.
//!
//! ```text
//! connects                                             accepts
//!    hello: both processes, E, R, a nonce       --->
//!                                               <---   challenge: E, a nonce, a proof
//!    proof [and a message of the key exchange]  --->
//!                                               <---   welcome, R [and a message of the key exchange]
//! ```
//! A proof is an HMAC (RFC 2104, with SHA-256) of the hello, E and nonce of the challenge, and the side that
//! sends it, keyed with the secret of the job. A stranger can neither compute it, nor use a recorded one
//! again, nor send one back. The secret is not sent. The welcome is the last message because both processes
//! may connect to each other at once: one of the two connections then gets no welcome.
//!
//! R says how many bytes a side has received over earlier connections to the other, and in the hello how many
//! connections these were: see `resume.rs`.
//!
//! E says whether a side encrypts. If both do, the last two messages carry the exchange of keys
//! (`cipher.rs`), and all bytes behind them are encrypted. If only one does, the proofs show this to both,
//! and the job ends. If E is changed on the way, the proofs do not hold, and there is no connection.

use super::cipher::MESSAGE_BYTES;
use crate::secret::Secret;
use hmac_sha256::HMAC;

/// The length of a nonce, in bytes.
const NONCE_BYTES: usize = 16;
/// Bytes of a proof.
pub(super) const PROOF_BYTES: usize = 32;
/// Bytes of a hello.
pub(super) const HELLO_BYTES: usize = 8 + 4 + 4 + 1 + EARLIER_BYTES + NONCE_BYTES;
/// Bytes of a challenge.
pub(super) const CHALLENGE_BYTES: usize = 1 + NONCE_BYTES + PROOF_BYTES;
/// The first byte of a welcome.
pub(super) const WELCOME: u8 = b'W';
/// Bytes of a welcome.
pub(super) const WELCOME_BYTES: usize = 1 + 8;
/// Bytes of the fields about earlier connections.
const EARLIER_BYTES: usize = 4 + 8;

/// The first bytes of a hello: the protocol and its version.
const MAGIC: [u8; 8] = *b"PELAGO\x00\x03";
/// The pre-shared key is derived from the secret and this label.
#[cfg(feature = "encrypt")]
const KEY_LABEL: &[u8] = b"pelago tcp: pre-shared key of the key exchange";

/// A random number that is used once.
pub(super) type Nonce = [u8; NONCE_BYTES];

/// The process that connects, and the process that accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) from: u32,
    pub(super) to: u32,
}

/// The connections that a process has had to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Earlier {
    pub(super) connections: u32,
    /// Bytes received over them.
    pub(super) received: u64,
}

impl Earlier {
    fn to_bytes(self) -> [u8; EARLIER_BYTES] {
        let mut bytes = [0; EARLIER_BYTES];
        bytes[..4].copy_from_slice(&self.connections.to_le_bytes());
        bytes[4..].copy_from_slice(&self.received.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Earlier {
        let connections = u32::from_le_bytes(std::array::from_fn(|i| bytes[i]));
        Earlier { connections, received: u64::from_le_bytes(std::array::from_fn(|i| bytes[4 + i])) }
    }
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
    /// Of the side that connects.
    pub(super) earlier: Earlier,
    /// Whether the side that connects encrypts, and whether the other side does.
    pub(super) encrypts: [bool; 2],
    /// The nonce of the side that connects, and that of the other side.
    pub(super) nonces: [Nonce; 2],
}

impl Terms {
    /// The bytes that a proof covers: everything but the secret.
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let [from, to] = [self.call.from, self.call.to].map(u32::to_le_bytes);
        let [one, other] = self.nonces;
        let earlier = self.earlier.to_bytes();
        [&MAGIC[..], &from, &to, &self.encrypts.map(u8::from), &earlier, &one, &other].concat()
    }

    fn mac(&self, side: Side) -> HMAC {
        let mut mac = HMAC::new(self.secret.to_bytes());
        mac.update([side as u8]);
        mac.update(self.to_bytes());
        mac
    }

    /// The key that the exchange of keys begins with.
    #[cfg(feature = "encrypt")]
    pub(super) fn shared_key(&self) -> [u8; 32] {
        HMAC::mac(KEY_LABEL, self.secret.to_bytes())
    }

    /// Whether the connection is encrypted. An error says that the sides differ.
    pub(super) fn are_encrypted(&self) -> Result<bool, String> {
        let set = |encrypts| if encrypts { "on" } else { "off" };
        let [from, to] = self.encrypts.map(set);
        let Call { from: one, to: other } = self.call;
        if from == to {
            return Ok(self.encrypts[0]);
        }
        Err(format!(
            "PELAGO_TCP_ENCRYPT is {from} for process {one} and {to} for process {other}: all processes of a \
             job need the same setting"
        ))
    }

    /// Bytes of the exchange of keys, behind the last proof and behind the welcome.
    pub(super) fn exchange_bytes(&self) -> usize {
        if self.encrypts == [true; 2] { MESSAGE_BYTES } else { 0 }
    }

    /// The proof of a side.
    pub(super) fn proof(&self, side: Side) -> [u8; PROOF_BYTES] {
        self.mac(side).finalize()
    }

    /// Whether this is the proof of a side. The time does not depend on the bytes.
    pub(super) fn is_proved(&self, side: Side, proof: &[u8]) -> bool {
        <&[u8; PROOF_BYTES]>::try_from(proof).is_ok_and(|proof| self.mac(side).finalize_verify(proof))
    }
}

/// A hello: the calling and the called process, whether the caller encrypts, its earlier connections, and its
/// nonce.
pub(super) type Hello = (Call, bool, Earlier, Nonce);

/// Writes a hello.
pub(super) fn hello((call, encrypts, earlier, nonce): Hello) -> [u8; HELLO_BYTES] {
    let mut bytes = [0; HELLO_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&call.from.to_le_bytes());
    bytes[12..16].copy_from_slice(&call.to.to_le_bytes());
    bytes[16] = encrypts.into();
    bytes[17..29].copy_from_slice(&earlier.to_bytes());
    bytes[29..].copy_from_slice(&nonce);
    bytes
}

/// Reads a hello; `None` if the bytes are not one.
pub(super) fn read_hello(bytes: &[u8; HELLO_BYTES]) -> Option<Hello> {
    let number = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
    let call = Call { from: number(8), to: number(12) };
    let (earlier, nonce) = (Earlier::from_bytes(&bytes[17..29]), std::array::from_fn(|i| bytes[29 + i]));
    (bytes[..8] == MAGIC).then_some((call, bytes[16] != 0, earlier, nonce))
}

/// Writes a welcome, which says how many bytes were received over earlier connections.
pub(super) fn welcome(received: u64) -> Vec<u8> {
    [&[WELCOME][..], &received.to_le_bytes()].concat()
}

/// Reads a welcome: the number of bytes that the other side has received, and the rest of the message; `None`
/// if the bytes are not a welcome.
pub(super) fn read_welcome(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (welcome, rest) = bytes.split_first_chunk::<WELCOME_BYTES>()?;
    let received = u64::from_le_bytes(std::array::from_fn(|i| welcome[1 + i]));
    (welcome[0] == WELCOME).then_some((received, rest))
}

/// Writes a challenge: whether the side that accepts encrypts, its nonce, and its proof.
pub(super) fn challenge(terms: &Terms) -> Vec<u8> {
    [&[u8::from(terms.encrypts[1])][..], &terms.nonces[1], &terms.proof(Side::Accepts)].concat()
}

/// Reads a challenge: whether the other side encrypts, its nonce, and its proof.
pub(super) fn read_challenge(bytes: &[u8]) -> (bool, Nonce, &[u8]) {
    let (nonce, proof) = bytes[1..].split_at(NONCE_BYTES);
    (bytes[0] != 0, nonce.try_into().expect("it has the length of a nonce"), proof)
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
        let call = Call { from: 3, to: 1 };
        let (secret, earlier) = (Secret::draw().unwrap(), Earlier { connections: 3, received: 7 });
        Terms { secret, call, earlier, encrypts: [true, false], nonces }
    }

    #[test]
    fn a_hello_is_read_as_it_was_written() {
        let (call, nonce) = (Call { from: 70_000, to: 2 }, nonce().unwrap());
        let mut bytes = [0; HELLO_BYTES];
        for (encrypts, connections, received) in [(false, 0, 0), (true, 1, 1 << 40), (true, u32::MAX, 9)] {
            let written = (call, encrypts, Earlier { connections, received }, nonce);
            bytes = hello(written);
            assert_eq!(read_hello(&bytes), Some(written));
            let welcome = welcome(received);
            assert_eq!(read_welcome(&welcome), Some((received, &[][..])));
            assert_eq!(read_welcome(&welcome[1..]), None);
        }
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
            Terms { earlier: Earlier { connections: 2, received: 7 }, ..terms },
            Terms { earlier: Earlier { connections: 3, received: 8 }, ..terms },
            Terms { encrypts: [false, false], ..terms },
            Terms { encrypts: [true, true], ..terms },
            Terms { encrypts: [false, true], ..terms },
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

    #[test]
    fn a_challenge_is_read_as_it_was_written() {
        let terms = terms();
        let bytes = challenge(&terms);
        assert_eq!(bytes.len(), CHALLENGE_BYTES);
        assert_eq!(read_challenge(&bytes), (false, terms.nonces[1], &terms.proof(Side::Accepts)[..]));
    }

    #[test]
    fn sides_that_differ_are_named() {
        let terms = |encrypts| Terms { encrypts, ..terms() };
        assert_eq!(terms([true; 2]).are_encrypted(), Ok(true));
        assert_eq!(terms([false; 2]).are_encrypted(), Ok(false));
        let text = terms([true, false]).are_encrypted().unwrap_err();
        assert!(text.contains("on for process 3 and off for process 1"), "{text}");
    }
}
