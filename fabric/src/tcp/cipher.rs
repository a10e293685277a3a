//! The keys of an encrypted connection, by the Noise protocol.
//!
//! The handshake's proof and welcome carry the two messages of `Noise_NNpsk0_25519_ChaChaPoly_SHA256`. The
//! pre-shared key is derived from the secret of the job. The prologue is what the proofs cover: the version,
//! both processes, whether each side encrypts, and both nonces. Both sides draw a key pair for each
//! connection, so a recorded connection cannot be decrypted by a party that learns the secret later.
//! Invariant: a key encrypts each number once ([`Sealer`](super::stream::Sealer) counts them). Source: T.
//! Perrin, The Noise Protocol Framework, revision 34 (2018), pattern NN, modifier psk0.

use super::handshake::{Side, Terms};
use std::io;

/// Bytes of a tag, by which altered bytes are found.
pub(super) const TAG_BYTES: usize = 16;
/// Bytes of each of the two messages: a public key and a tag.
pub(super) const MESSAGE_BYTES: usize = 32 + TAG_BYTES;
/// Whether this build can encrypt.
pub const CAN_ENCRYPT: bool = cfg!(feature = "encrypt");

/// A message of the exchange.
pub(super) type Message = [u8; MESSAGE_BYTES];

#[cfg(feature = "encrypt")]
mod noise {
    use super::{Message, Side, Terms, io};
    use snow::{Builder, Error, HandshakeState, StatelessTransportState};

    const PROTOCOL: &str = "Noise_NNpsk0_25519_ChaChaPoly_SHA256";

    /// The exchange of public keys that a connection begins with.
    pub struct Exchange(Box<HandshakeState>);

    /// The keys of a connection, one for each direction.
    pub struct Cipher(StatelessTransportState);

    fn failed(error: Error) -> io::Error {
        io::Error::other(format!("the exchange of keys failed: {error}"))
    }

    impl Exchange {
        pub(in super::super) fn begin(terms: &Terms, side: Side) -> io::Result<Exchange> {
            let (key, prologue) = (terms.shared_key(), terms.to_bytes());
            let build = || {
                let builder = Builder::new(PROTOCOL.parse()?).psk(0, &key)?.prologue(&prologue)?;
                match side {
                    Side::Connects => builder.build_initiator(),
                    Side::Accepts => builder.build_responder(),
                }
            };
            build().map(|state| Exchange(Box::new(state))).map_err(failed)
        }

        /// The message of this side.
        pub(in super::super) fn write(&mut self) -> io::Result<Message> {
            let mut message = [0; size_of::<Message>()];
            let bytes = self.0.write_message(&[], &mut message).map_err(failed)?;
            debug_assert_eq!(bytes, message.len(), "a public key and a tag");
            Ok(message)
        }

        /// Reads the message of the other side, which proves that it knows the secret.
        pub(in super::super) fn read(&mut self, message: &[u8]) -> io::Result<()> {
            self.0.read_message(message, &mut [0; size_of::<Message>()]).map(drop).map_err(failed)
        }

        /// The keys, after both messages.
        pub(in super::super) fn finish(self) -> io::Result<Cipher> {
            self.0.into_stateless_transport_mode().map(Cipher).map_err(failed)
        }
    }

    impl Cipher {
        /// Encrypts bytes, and adds their tag. Returns the number of bytes written.
        pub(in super::super) fn encrypt(
            &self,
            number: u64,
            plain: &[u8],
            to: &mut [u8],
        ) -> io::Result<usize> {
            self.0.write_message(number, plain, to).map_err(io::Error::other)
        }

        /// Decrypts bytes that end with their tag. Returns the number of bytes written; `None` if they are
        /// not what the other side has encrypted with this number.
        pub(in super::super) fn decrypt(&self, number: u64, sealed: &[u8], to: &mut [u8]) -> Option<usize> {
            self.0.read_message(number, sealed, to).ok()
        }
    }
}

/// A build without the feature has no values of these types, and never encrypts.
#[cfg(not(feature = "encrypt"))]
mod noise {
    use super::{Message, Side, Terms, io};

    pub enum Exchange {}

    pub enum Cipher {}

    impl Exchange {
        pub(in super::super) fn begin(_terms: &Terms, _side: Side) -> io::Result<Exchange> {
            Err(io::Error::other("this build cannot encrypt"))
        }

        pub(in super::super) fn write(&mut self) -> io::Result<Message> {
            match *self {}
        }

        pub(in super::super) fn read(&mut self, _message: &[u8]) -> io::Result<()> {
            match *self {}
        }

        pub(in super::super) fn finish(self) -> io::Result<Cipher> {
            match self {}
        }
    }

    impl Cipher {
        pub(in super::super) fn encrypt(
            &self,
            _number: u64,
            _plain: &[u8],
            _to: &mut [u8],
        ) -> io::Result<usize> {
            match *self {}
        }

        pub(in super::super) fn decrypt(
            &self,
            _number: u64,
            _sealed: &[u8],
            _to: &mut [u8],
        ) -> Option<usize> {
            match *self {}
        }
    }
}

pub(super) use noise::{Cipher, Exchange};
