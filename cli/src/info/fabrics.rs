//! `pelago info --fabrics`: the fabric that a job of several nodes uses and the reason, the addresses at
//! which the provider `tcp` listens, and the offers of libfabric on this machine, with the usable ones.
//! Invariant: the survey of the provider `ofi` queries libfabric, and the settings apply as in a job; this
//! file has no knowledge about providers of libfabric.

use std::fmt::Write;

use pelago_boot::{FabricKind, RouteKind, Settings};
use pelago_fabric::ofi::{Choice, Find, Library, OfiError, Standing, Survey};
use pelago_fabric::tcp::CAN_ENCRYPT;
use serde::Serialize;

use pelago_report::Table;

/// The report.
#[derive(Serialize)]
pub struct Report {
    /// The fabric between nodes under these settings, and the reason.
    used: String,
    /// Whether that is libfabric.
    uses_libfabric: bool,
    /// The addresses at which the provider `tcp` listens.
    tcp: Vec<String>,
    /// Whether it encrypts.
    tcp_encrypts: bool,
    /// The library, if it was found.
    libfabric: Option<Loaded>,
    /// Why there are no offers.
    obstacle: Option<String>,
    /// The offers; the first one is the one that a job uses, if it uses libfabric.
    offers: Vec<Row>,
    /// Providers that the settings name, but that make no offer here.
    absent: Vec<String>,
}

#[derive(Serialize)]
struct Loaded {
    version: String,
    path: String,
}

#[derive(Serialize)]
struct Row {
    /// `chosen`, `first` (chosen if a job used libfabric), `by turns`, `usable`, `ruled out` or `unusable`.
    standing: &'static str,
    provider: String,
    version: String,
    domain: String,
    fabric: String,
    address: Option<String>,
    /// The inject size in bytes.
    inject_bytes: usize,
    /// Why the offer is not usable, and other remarks.
    remarks: Vec<String>,
}

impl Report {
    /// Queries the libfabric that the settings name.
    pub fn gather(settings: &Settings) -> Report {
        let fast = fast_network(settings);
        let surveyed = survey(&fast.clone().unwrap_or_else(|| pelago::fabric::choice(settings)));
        let offers_fast = surveyed.as_ref().is_ok_and(|survey| survey.chosen().is_some());
        let fast = fast.map(|_| offers_fast);
        let used = used(settings, fast);
        let uses_libfabric = settings.fabric == FabricKind::Provider("ofi") || fast == Some(true);
        let tcp = pelago_fabric::tcp::addresses(settings.tcp_interface.as_deref());
        let tcp = tcp.unwrap_or_default().iter().map(ToString::to_string).collect();
        let tcp_encrypts = settings.tcp_encrypt;
        match surveyed {
            Ok(survey) => Report {
                used,
                uses_libfabric,
                tcp,
                tcp_encrypts,
                libfabric: Some(Loaded::of(&survey)),
                obstacle: None,
                offers: survey.finds.iter().map(|find| Row::of(find, uses_libfabric)).collect(),
                absent: survey.absent,
            },
            Err(error) => {
                let (offers, absent, obstacle) = (Vec::new(), Vec::new(), Some(error.to_string()));
                Report { used, uses_libfabric, tcp, tcp_encrypts, libfabric: None, obstacle, offers, absent }
            }
        }
    }

    /// The report as text.
    pub fn text(&self) -> String {
        let library = match &self.libfabric {
            Some(Loaded { version, path }) => format!("{version}, {path}"),
            None => format!("none: {}", self.obstacle.as_deref().unwrap_or_default()),
        };
        let tcp = match self.tcp.is_empty() {
            true => "no interface has an address (PELAGO_TCP_INTERFACE)".to_owned(),
            false => format!("listens at {}; {}", self.tcp.join(", "), encryption(self.tcp_encrypts)),
        };
        let mut text = format!("used       {}\ntcp        {tcp}\nlibfabric  {library}\n", self.used);
        if self.libfabric.is_none() {
            return text;
        }
        let choice = match self.offers.first() {
            Some(Row { standing: CHOSEN, provider, domain, .. }) => format!("{provider} on {domain} is used"),
            Some(Row { standing: FIRST, provider, domain, .. }) => {
                format!("not used; PELAGO_FABRIC=ofi would choose {provider} on {domain}")
            }
            _ => "no offer is usable and requested; the last column has the reasons".to_owned(),
        };
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(text, "           {choice}\n");
        let mut table = Table::new(
            "What libfabric offers here; PELAGO_OFI_PROVIDER and PELAGO_OFI_INTERFACE choose among it",
            6,
            "standing|provider|version|domain|address|remarks",
        );
        for row in &self.offers {
            let Row { standing, provider, version, domain, address, remarks, .. } = row;
            let address = address.as_deref().unwrap_or("-");
            table.row([standing, provider.as_str(), version, domain, address, &remarks.join("; ")]);
        }
        let _ = write!(text, "{table}");
        if !self.absent.is_empty() {
            let _ = writeln!(text, "\nPELAGO_OFI_PROVIDER names also, not here: {}", self.absent.join(", "));
        }
        text
    }
}

const CHOSEN: &str = "chosen";
const FIRST: &str = "first";
const BY_TURNS: &str = "by turns";

/// Whether the connections of the provider `tcp` are encrypted.
fn encryption(is_on: bool) -> &'static str {
    match is_on {
        false => "sends data in clear (PELAGO_TCP_ENCRYPT=off)",
        true if CAN_ENCRYPT => "encrypts (PELAGO_TCP_ENCRYPT=on)",
        true => "cannot encrypt: this build lacks the feature `encrypt` (PELAGO_TCP_ENCRYPT=on)",
    }
}

fn survey(choice: &Choice) -> Result<Survey, OfiError> {
    Survey::of(Library::open(choice.library.as_deref())?, choice)
}

/// The fabric that a job of several nodes uses under these settings, and the reason.
pub fn between_nodes(settings: &Settings) -> String {
    let is_usable = |choice| survey(&choice).is_ok_and(|survey| survey.chosen().is_some());
    used(settings, fast_network(settings).map(is_usable))
}

/// The choice among the offers of libfabric if this machine has a fast network and no fabric is set.
fn fast_network(settings: &Settings) -> Option<Choice> {
    match settings.fabric {
        FabricKind::Auto => pelago::fabric::fast_choice(settings),
        _ => None,
    }
}

/// The fabric that is used. `fast` tells whether libfabric is usable on a fast network; `None` if there is no
/// fast network.
fn used(settings: &Settings, fast: Option<bool>) -> String {
    let asked = match settings.fabric {
        FabricKind::Provider(name) => format!("PELAGO_FABRIC={name}"),
        _ => String::new(),
    };
    let (provider, why) = match (settings.fabric, fast) {
        (FabricKind::Shm, _) => {
            return "memory alone: all PEs must be on one node (PELAGO_FABRIC=shm)".to_owned();
        }
        (FabricKind::Provider("ofi"), _) => ("libfabric", &*asked),
        (FabricKind::Provider(name), _) => (name, &*asked),
        (FabricKind::Auto, Some(true)) => ("libfabric", "this machine has a fast network; if all have it"),
        (FabricKind::Auto, Some(false)) => {
            ("tcp", "this machine has a fast network, but libfabric does not serve there")
        }
        (FabricKind::Auto, None) if settings.tcp_encrypt => ("tcp", "PELAGO_TCP_ENCRYPT=on"),
        (FabricKind::Auto, None) => ("tcp", "this machine has no fast network"),
    };
    let is_for_all = settings.route == RouteKind::Net && settings.fabric != FabricKind::Auto;
    let pes = if is_for_all { "all PEs (PELAGO_ROUTE=net)" } else { "PEs of different nodes" };
    format!("{provider} between {pes}: {why}")
}

impl Loaded {
    fn of(survey: &Survey) -> Loaded {
        let (major, minor) = survey.library.version();
        let path = survey.file.as_ref().map(|file| file.display().to_string());
        Loaded {
            version: format!("{major}.{minor}"),
            path: path.unwrap_or_else(|| survey.library.path().to_owned()),
        }
    }
}

impl Row {
    fn of(find: &Find, uses_libfabric: bool) -> Row {
        let (standing, mut remarks) = match &find.standing {
            Standing::Chosen if uses_libfabric => (CHOSEN, Vec::new()),
            Standing::Chosen => (FIRST, vec!["chosen if PELAGO_FABRIC=ofi".to_owned()]),
            Standing::ByTurns => (BY_TURNS, vec!["PEs take it and the chosen one by turns".to_owned()]),
            Standing::Usable => ("usable", Vec::new()),
            Standing::RuledOut(why) => ("ruled out", vec![(*why).to_owned()]),
            Standing::Lacking(lacks) => ("unusable", lacks.clone()),
        };
        if find.is_loopback() && standing != "unusable" {
            remarks.push("leads to PEs of this machine only".to_owned());
        }
        let offer = &find.offer;
        let (major, minor) = offer.provider_version;
        Row {
            standing,
            provider: offer.provider.clone(),
            version: format!("{major}.{minor}"),
            domain: offer.domain.clone(),
            fabric: offer.fabric.clone(),
            address: offer.source.map(|source| source.ip().to_string()),
            inject_bytes: offer.inject_bytes,
            remarks,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(pairs: &[(&str, &str)]) -> Report {
        let pairs = pairs.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        Report::gather(&Settings::from_pairs(pairs).unwrap())
    }

    #[test]
    fn without_libfabric_it_says_what_to_do() {
        let report = report(&[("PELAGO_OFI_LIBRARY", "/nowhere/libfabric.so.1")]);
        let text = report.text();
        assert!(text.contains("libfabric  none: ") && text.contains("PELAGO_OFI_LIBRARY"), "{text}");
        assert!(text.lines().count() == 3 && report.offers.is_empty(), "{text}");
    }

    #[test]
    fn it_says_what_is_used_and_why() {
        let used = |pairs: &[(&str, &str)]| report(pairs).text().lines().next().unwrap().to_owned();
        assert!(used(&[("PELAGO_FABRIC", "shm")]).contains("used       memory alone"));
        assert!(used(&[]).contains("between PEs of different nodes: this machine has"));
        assert!(
            used(&[("PELAGO_FABRIC", "tcp")]).contains("tcp between PEs of different nodes: PELAGO_FABRIC")
        );
        let all = [("PELAGO_FABRIC", "ofi"), ("PELAGO_ROUTE", "net")];
        assert!(used(&all).contains("libfabric between all PEs"));
    }

    #[test]
    fn it_says_where_tcp_listens() {
        let at = |interface| report(&[("PELAGO_TCP_INTERFACE", interface)]).text();
        assert!(at("127.0.0.1").contains("tcp        listens at 127.0.0.1; sends data in clear"));
        assert!(at("nowhere").contains("tcp        no interface has an address (PELAGO_TCP_INTERFACE)"));
    }

    #[test]
    fn it_says_whether_tcp_encrypts() {
        let with = |value| report(&[("PELAGO_TCP_INTERFACE", "127.0.0.1"), ("PELAGO_TCP_ENCRYPT", value)]);
        assert!(with("off").text().contains("127.0.0.1; sends data in clear (PELAGO_TCP_ENCRYPT=off)\n"));
        let text = with("on").text();
        let says = if CAN_ENCRYPT { "127.0.0.1; encrypts" } else { "cannot encrypt: this build" };
        assert!(text.contains(says) && text.contains("different nodes: PELAGO_TCP_ENCRYPT=on"), "{text}");
    }

    /// This test passes on machines with libfabric and on those without.
    #[test]
    fn offers_stand_in_columns_the_chosen_one_first() {
        let report = report(&[]);
        let text = report.text();
        assert_eq!(report.libfabric.is_none(), report.obstacle.is_some());
        let mut lines = text.lines().skip_while(|line| !line.contains(" remarks"));
        let Some(names) = lines.next() else { return };
        let column = |name| names.find(name).unwrap();
        for (row, line) in report.offers.iter().zip(lines) {
            assert!(line[column("provider")..].starts_with(&row.provider), "{text}");
            assert!(line[column("domain")..].starts_with(&row.domain), "{text}");
            assert!(line.ends_with(row.remarks.last().map_or("", String::as_str)), "{text}");
            let needs_reason = ["ruled out", "unusable"].contains(&row.standing);
            assert!(!row.remarks.is_empty() || !needs_reason, "{text}");
        }
        let chosen = report.offers.iter().filter(|row| row.standing == CHOSEN).count();
        assert_eq!(chosen, usize::from(report.offers.first().is_some_and(|row| row.standing == CHOSEN)));
    }
}
