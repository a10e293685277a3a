//! The conformance suite on the template of a provider.

use pelago_fabric_testkit::conformance;
use pelago_fabric_testkit::conformance::{Group, Harness};
use pelago_fabric_testkit::template::Template;

struct OverTemplate;

impl Harness for OverTemplate {
    type Endpoint = Template;

    fn open(n_pes: usize) -> Group<Template> {
        Group::connect(Template::open(n_pes))
    }
}

conformance! {
    template: OverTemplate,
}
