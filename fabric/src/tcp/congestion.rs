//! The congestion control of connections.
//!
//! Some systems control congestion by BBR, which sends by a timer (pacing). A timer is too coarse for a link
//! of a few microseconds: transfers from 64 KiB on take 2 to 3 times as long. So connections use another
//! algorithm there, unless the user has chosen one.

use rustix::net::sockopt;
use std::io;
use std::os::fd::OwnedFd;

/// The algorithms that take the place of one that paces, the preferred one first. The system permits any
/// user the second one.
const UNPACED: [&str; 2] = ["cubic", "reno"];

/// Which algorithm connections use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Congestion {
    /// The system's, unless it paces.
    #[default]
    Unpaced,
    /// The system's.
    System,
    /// The one with this name.
    Named(String),
}

impl Congestion {
    /// The choice that a setting names; `None` for the default.
    pub(super) fn of(setting: Option<&str>) -> Congestion {
        match setting {
            None => Congestion::Unpaced,
            Some("system") => Congestion::System,
            Some(name) => Congestion::Named(name.to_owned()),
        }
    }

    /// The choice as text, with the system's algorithm where that matters.
    pub(super) fn describe(&self) -> String {
        match self {
            Congestion::System => "the system's".to_owned(),
            Congestion::Named(name) => name.clone(),
            Congestion::Unpaced => "the system's, unless it paces".to_owned(),
        }
    }

    /// Sets the algorithm of a socket that listens, or that is to connect. A connection that is open would go
    /// on pacing.
    ///
    /// # Errors
    /// If the system does not permit the named algorithm.
    pub(super) fn set(&self, socket: &OwnedFd) -> io::Result<()> {
        match self {
            Congestion::System => {}
            Congestion::Named(name) => sockopt::set_tcp_congestion(socket, name)?,
            Congestion::Unpaced => {
                if sockopt::tcp_congestion(socket).is_ok_and(|name| paces(&name)) {
                    // Without one of these, connections work as the system has chosen.
                    let _ = UNPACED.iter().any(|name| sockopt::set_tcp_congestion(socket, name).is_ok());
                }
            }
        }
        Ok(())
    }
}

/// Whether an algorithm paces.
fn paces(name: &str) -> bool {
    name.starts_with("bbr")
}

#[cfg(test)]
mod tests {
    use super::super::socket;
    use super::*;
    use std::net::{Ipv4Addr, SocketAddr};

    /// The algorithms of a listening socket, and of both ends of a connection to it.
    fn algorithms(congestion: &Congestion) -> io::Result<[String; 3]> {
        let (listener, port) = socket::listen(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0), congestion)?;
        let caller = socket::connect(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port), congestion)?;
        let accepted = std::iter::from_fn(|| Some(socket::accept(&listener))).take(1_000_000);
        let accepted =
            accepted.filter_map(|socket| socket.unwrap()).next().expect("the caller has connected");
        Ok([listener, caller, accepted].map(|socket| sockopt::tcp_congestion(&socket).unwrap()))
    }

    #[test]
    fn both_ends_use_the_chosen_algorithm() {
        assert_eq!(algorithms(&Congestion::of(Some("reno"))).unwrap(), ["reno"; 3]);
        let default = sockopt::tcp_congestion(socket::plain().unwrap()).unwrap();
        assert_eq!(algorithms(&Congestion::of(Some("system"))).unwrap(), [default.as_str(); 3]);
        let chosen = algorithms(&Congestion::of(None)).unwrap();
        match paces(&default) {
            true => assert!(chosen.iter().all(|name| UNPACED.contains(&name.as_str())), "{chosen:?}"),
            false => assert_eq!(chosen, [default.as_str(); 3]),
        }
    }

    #[test]
    fn an_algorithm_that_does_not_exist_is_an_error() {
        for name in ["none", "renoo", "a name that is longer than names may be"] {
            assert!(algorithms(&Congestion::of(Some(name))).is_err(), "{name}");
        }
    }

    #[test]
    fn bbr_paces() {
        assert!(paces("bbr") && paces("bbr2") && !paces("cubic") && !paces("reno") && !paces("dctcp"));
    }
}
