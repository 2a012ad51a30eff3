//! The likely causes of what is seen, with what speaks for and against each.
//!
//! What causes look like comes from people who brought up clusters (their reports are named where a rule rests on one); which of
//! them it is here, the facts of this machine say: widths, slots, ports, NUMA nodes, control bits, models, variables. A fact weighs
//! about 3, a signature that fits about 2, a general likelihood 1 and less; what speaks against halves it at least.

mod case;
mod facts;
mod parts;
mod paths;
mod together;
mod units;

use super::{Shape, Suspect, View};
use case::Case;

/// Likeliest first.
pub(super) fn suspects(view: &View<'_>, shape: &Shape) -> Vec<Suspect> {
    let mut case = Case::new(view);
    match shape {
        Shape::Asymmetry { from, to, rate, back } => paths::asymmetry(&mut case, *from, *to, rate / back),
        Shape::SlowUnit { unit, ways, share, own_slow } => units::slow_unit(&mut case, *unit, *ways, *share, *own_slow),
        Shape::SlowBetween { from, to, share } => units::slow_between(&mut case, *from, *to, *share),
        Shape::SlowPair { from, to, share } => paths::slow_pair(&mut case, *from, *to, *share),
        Shape::SlowUntold { from, to, share } => paths::slow_untold(&mut case, *from, *to, *share),
        Shape::SlowClass { class, share } => paths::slow_class(&mut case, *class, *share),
        Shape::Inverted { near, far, .. } => paths::inverted(&mut case, *near, *far),
        Shape::HighLatency { ranks, class, ratio, whole } => paths::high_latency(&mut case, ranks, *class, *ratio, *whole),
        Shape::FanCollapse { root, peers, .. } => together::collapse(&mut case, *root, peers),
        Shape::FanDoesNotScale { roots, concurrency, into, .. } => together::scaling(&mut case, roots, *concurrency, *into),
        Shape::DuplexLoss { pairs, ratio } => together::duplex(&mut case, pairs, *ratio),
        Shape::HiddenResource { hidden } => together::hidden(&mut case, hidden),
        Shape::PoorFit { .. } => together::poor_fit(&mut case),
        Shape::Unsteady { pairs, .. } => together::unsteady(&mut case, pairs),
        Shape::Failed { pairs, ranks, corrupt } => together::failed(&mut case, pairs, ranks, *corrupt),
        Shape::AboveNominal { from, to, ratio } => paths::above_nominal(&mut case, *from, *to, *ratio),
        Shape::TrainedDown { host, hop, state, .. } => parts::trained_down(&mut case, host, hop, state),
        Shape::MissingLinks { host, gpu, up, of, .. } => parts::missing_links(&mut case, host, *gpu, *up, *of),
        Shape::LinksUnused { host, .. } => parts::links_unused(&mut case, host),
        Shape::UnequalPorts { say, .. } => parts::unequal_ports(&mut case, say),
        Shape::SharedPort { host, port, ranks, idle } => parts::shared_port(&mut case, host, port, ranks, idle),
        Shape::Misbound { ranks } => parts::misbound(&mut case, ranks),
        Shape::BadPort { port, say, .. } => parts::bad_port(&mut case, port, say),
        Shape::Redirected { host, bridges, .. } => parts::redirected(&mut case, host, bridges),
        Shape::Mismatch { say } => case.add(super::Cause::OtherGroup, 2.0, say.clone(), ""),
        Shape::SlowExecution { resource, .. } => together::executed(&mut case, resource),
        Shape::Other { .. } => {}
    }
    case.done()
}
